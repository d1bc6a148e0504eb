"""Tested sets: versions that were tried together, and which box keeps to them."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import audit
from dashboard.audit import actor_of
from dashboard.firmware.fitting import differences, versions_of
from dashboard.forms.firmware import SetForm
from dashboard.models import TestedSet
from dashboard.views.access import may_operate, operator_required
from dashboard.views.firmware.inventory import nodes_of


@login_required
@require_http_methods(["GET", "POST"])
def sets(request: HttpRequest) -> HttpResponse:
    return _add(request) if request.method == "POST" else _page(request, None)


@operator_required
def _add(request: HttpRequest) -> HttpResponse:
    form = SetForm(nodes_of(request), request.POST)
    if not form.is_valid():
        return _page(request, form)
    cleaned = form.cleaned_data
    versions = versions_of(cleaned["node"].firmware.all())
    if not versions:
        form.add_error("node", _("No version of this box is known."))
    if TestedSet.objects.filter(name=cleaned["name"]).exists():
        form.add_error("name", _("There is a set of this name already."))
    if form.errors:
        return _page(request, form)
    with transaction.atomic():
        made = TestedSet.objects.create(
            name=cleaned["name"],
            versions=versions,
            notes=cleaned["notes"],
            by=request.user.get_username(),
        )
        audit.note(actor_of(request), "firmware.set.add", made, after={"versions": versions})
    return redirect("firmware-set", made.pk)


@login_required
@require_safe
def set_detail(request: HttpRequest, pk: int) -> HttpResponse:
    held = get_object_or_404(TestedSet, pk=pk)
    nodes = nodes_of(request).prefetch_related("firmware")
    return render(
        request,
        "firmware/set.html",
        {
            "set": held,
            "boxes": [
                (node, differences(held.versions, list(node.firmware.all())))
                for node in nodes
                if node.firmware.all()
            ],
            "may_operate": may_operate(request),
        },
    )


@operator_required
@require_POST
def set_remove(request: HttpRequest, pk: int) -> HttpResponse:
    held = get_object_or_404(TestedSet, pk=pk)
    with transaction.atomic():
        told = {"versions": held.versions}
        audit.note(actor_of(request), "firmware.set.remove", held, before=told)
        held.delete()
    messages.success(request, _("The set %(name)s is removed.") % {"name": held.name})
    return redirect("firmware-sets")


def _page(request: HttpRequest, form: SetForm | None) -> HttpResponse:
    nodes = nodes_of(request).prefetch_related("firmware")
    boxes = [(node, list(node.firmware.all())) for node in nodes]
    held = [
        (each, [node for node, parts in boxes if parts and not differences(each.versions, parts)])
        for each in TestedSet.objects.all()
    ]
    return render(
        request,
        "firmware/sets.html",
        {
            "sets": held,
            "form": form or SetForm(nodes_of(request)),
            "may_operate": may_operate(request),
        },
        status=422 if form and form.errors else 200,
    )
