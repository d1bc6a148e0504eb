"""Vendors' keys: whose signatures count. Only administrators say so."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import audit
from dashboard.audit import actor_of
from dashboard.firmware.signatures import fingerprint
from dashboard.forms.firmware import KeyForm
from dashboard.models import FirmwareKey
from dashboard.views.access import admin_required, may_administer


@login_required
@require_http_methods(["GET", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    return _add(request) if request.method == "POST" else _page(request, KeyForm())


@admin_required
def _add(request: HttpRequest) -> HttpResponse:
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _page(request, form)
    key = form.save(commit=False)
    key.fingerprint = fingerprint(key.pem)
    key.by = request.user.get_username()
    if known := FirmwareKey.objects.filter(fingerprint=key.fingerprint).first():
        form.add_error("pem", _("This key is here already, as %(name)s.") % {"name": known.name})
        return _page(request, form)
    with transaction.atomic():
        key.save()
        audit.note(
            actor_of(request), "firmware.key.add", key, after={"fingerprint": key.fingerprint}
        )
    messages.success(request, _("Signatures by %(name)s count now.") % {"name": key.name})
    return redirect("firmware-keys")


@admin_required
@require_POST
def key_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """One by which images were verified stays: it is what their row says."""
    key = get_object_or_404(FirmwareKey, pk=pk)
    if key.firmwareimage_set.exists():
        words = _("%(name)s has verified images that are in the store; remove them first.")
        messages.error(request, words % {"name": key.name})
        return redirect("firmware-keys")
    with transaction.atomic():
        told = {"fingerprint": key.fingerprint}
        audit.note(actor_of(request), "firmware.key.remove", key, before=told)
        key.delete()
    return redirect("firmware-keys")


def _page(request: HttpRequest, form: KeyForm) -> HttpResponse:
    return render(
        request,
        "firmware/keys.html",
        {
            "keys": FirmwareKey.objects.annotate(images=Count("firmwareimage")),
            "form": form,
            "may_admin": may_administer(request),
        },
        status=422 if form.errors else 200,
    )
