"""Templates of engine settings: kept from a deployment, listed, removed."""

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from dashboard import settings_templates
from dashboard.audit import actor_of
from dashboard.configuration.declared import SettingsRefused, Words
from dashboard.configuration.engine import ENGINE
from dashboard.models import Deployment, SettingsTemplate
from dashboard.texts import storable
from dashboard.views.access import may_operate, operator_required


@dataclass(frozen=True)
class Row:
    template: SettingsTemplate
    values: list[tuple[Words, str]]


@login_required
@require_safe
def templates(request: HttpRequest) -> HttpResponse:
    rows = [Row(one, _shown(one)) for one in SettingsTemplate.objects.all()]
    context = {"rows": rows, "may_operate": may_operate(request)}
    return render(request, "settings/templates.html", context)


def _shown(row: SettingsTemplate) -> list[tuple[Words, str]]:
    return [
        (one.label, one.shown(row.values[one.name])) for one in ENGINE if one.name in row.values
    ]


@operator_required
@require_POST
def keep(request: HttpRequest, name: str) -> HttpResponse:
    """The settings that a deployment has now, under a name."""
    deployment = get_object_or_404(Deployment, name=name)
    called, note = (storable(request.POST.get(part, "")).strip() for part in ("name", "note"))
    try:
        settings_templates.keep(
            called, note, ENGINE.complete(deployment.settings), actor_of(request)
        )
    except SettingsRefused as error:
        messages.error(request, str(error))
        return redirect("deployment-settings", name)
    messages.success(request, _("Kept as the template %(name)s.") % {"name": called})
    return redirect("templates")


@operator_required
@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(SettingsTemplate, pk=pk)
    settings_templates.remove(row, actor_of(request))
    messages.success(request, _("The template %(name)s is removed.") % {"name": row.name})
    return redirect("templates")
