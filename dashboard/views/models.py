"""The catalogue."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import catalogue, demo
from dashboard.errors import ImportRefused
from dashboard.forms.models import ImportForm
from dashboard.models import Model
from dashboard.views.access import hidden_of, may_operate, operator_required
from dashboard.views.model_facts import model_facts
from dashboard.views.trail import note_form


@login_required
@require_http_methods(["GET", "POST"])
def models(request: HttpRequest) -> HttpResponse:
    return _import(request) if request.method == "POST" else _page(request, ImportForm())


@operator_required
def _import(request: HttpRequest) -> HttpResponse:
    form = ImportForm(request.POST)
    if not form.is_valid():
        return _page(request, form)
    try:
        model = catalogue.import_model(
            form.cleaned_data["path"], name=form.cleaned_data["name"] or None
        )
    except ImportRefused as refused:
        form.add_error("path", str(refused))
        return _page(request, form)
    note_form(request, "model.import", model, form)
    messages.success(request, _("%(model)s is in the catalogue.") % {"model": model.name})
    return redirect("model-detail", model.name)


@operator_required
@require_POST
def add_experts_demo(request: HttpRequest) -> HttpResponse:
    try:
        model = demo.add_experts_demo()
    except ImportRefused as refused:
        messages.error(request, str(refused))
        return redirect("models")
    messages.success(request, _("%(model)s is in the catalogue.") % {"model": model.name})
    return redirect("model-detail", model.name)


@login_required
def model_detail(request: HttpRequest, name: str) -> HttpResponse:
    model = get_object_or_404(Model, name=name)
    return render(
        request,
        "models/detail.html",
        {
            "model": model,
            "facts": model_facts(model.shape),
            "deployments": model.deployments.exclude(pk__in=hidden_of(request).deployments),
            "may_operate": may_operate(request),
        },
    )


def _page(request: HttpRequest, form: ImportForm) -> HttpResponse:
    shown = ~Q(deployments__in=hidden_of(request).deployments)
    return render(
        request,
        "models/list.html",
        {
            "models": Model.objects.annotate(uses=Count("deployments", filter=shown)),
            "form": form,
            "demo_offered": demo.is_offered(),
            "may_operate": may_operate(request),
        },
        status=422 if form.errors else 200,
    )
