"""The panel's own settings and who changed them."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import panel_settings
from dashboard.audit import actor_of
from dashboard.configuration.declared import SettingsRefused
from dashboard.configuration.panel import PANEL
from dashboard.forms.declared import SettingsForm
from dashboard.forms.offers import secret_choices
from dashboard.lifecycle import settings as lifecycle
from dashboard.models import Revision
from dashboard.views.access import admin_required, may_administer
from dashboard.views.settings.history import SHOWN, history


@login_required
@require_http_methods(["GET", "POST"])
def panel(request: HttpRequest) -> HttpResponse:
    return _change(request) if request.method == "POST" else _page(request, _form(request))


@admin_required
def _change(request: HttpRequest) -> HttpResponse:
    form = _form(request)
    if not form.is_valid():
        return _page(request, form)
    try:
        why = form.cleaned_data["why"]
        revision = lifecycle.change_panel(form.entered, actor_of(request), why=why)
    except SettingsRefused as error:
        form.refuse(error.errors)
        return _page(request, form)
    if revision is None:
        messages.info(request, _("Nothing was different."))
    else:
        messages.success(request, _("Saved, and in effect within a few seconds."))
    return redirect("settings")


@admin_required
@require_POST
def back(request: HttpRequest, number: int) -> HttpResponse:
    """The settings of an earlier revision again."""
    revision = get_object_or_404(Revision, deployment=None, node=None, number=number)
    try:
        lifecycle.back_to(revision, actor_of(request))
    except SettingsRefused as error:
        messages.error(request, str(error))
    return redirect("settings")


def _form(request: HttpRequest) -> SettingsForm:
    return SettingsForm(
        PANEL,
        panel_settings.in_effect(),
        request.POST if request.method == "POST" else None,
        offered=secret_choices(PANEL),
        fixed=panel_settings.overridden(),
        may_change=may_administer(request),
    )


def _page(request: HttpRequest, form: SettingsForm) -> HttpResponse:
    rows = Revision.objects.filter(deployment=None, node=None).order_by("-number")
    return render(
        request,
        "settings/panel.html",
        {
            "form": form,
            "may_change": may_administer(request),
            "changes": history(PANEL, rows[: SHOWN + 1])[:SHOWN],
        },
        status=422 if form.errors else 200,
    )
