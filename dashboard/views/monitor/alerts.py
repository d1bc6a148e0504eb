"""What fires now, and the silences and maintenance windows that keep it quiet."""

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, re_path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard import outbox
from dashboard.access import seen
from dashboard.audit import actor_of, note
from dashboard.forms.silences import MaintenanceForm, SilenceForm
from dashboard.views.access import hidden_of, may_operate, operator_required
from dashboard.views.trail import note_form
from monitoring.alerts.queries import firing, firing_total
from monitoring.models import Alert, AlertStatus, Channel, Maintenance, Rule, Silence

RECENT = 30


@login_required
@require_GET
def alerts(request: HttpRequest) -> HttpResponse:
    hidden = hidden_of(request)
    every = seen(Alert.objects.all(), hidden)
    found = every.select_related("node", "deployment", "rule", "incident")
    return render(
        request,
        "monitor/alerts.html",
        {
            "firing": seen(firing(), hidden),
            "pending": found.filter(status=AlertStatus.PENDING)[:RECENT],
            "ended": found.filter(status=AlertStatus.RESOLVED).order_by("-resolved")[:RECENT],
            "counts": firing_total(every),
            "hushed": every.filter(status=AlertStatus.FIRING, hushed=True).count(),
            "rules_on": Rule.objects.filter(enabled=True).count(),
            "channels_on": Channel.objects.filter(enabled=True).count(),
            "may_operate": may_operate(request),
        },
    )


@login_required
@require_GET
def silences(request: HttpRequest) -> HttpResponse:
    asked = {name: request.GET.get(name) for name in ("rule", "node", "deployment")}
    given = {name: value for name, value in asked.items() if value}
    silence = SilenceForm(initial=given, hidden=hidden_of(request))
    return _silences_page(request, silence, _new_maintenance(request), opened=any(asked.values()))


@operator_required
@require_POST
@transaction.atomic
def silence_new(request: HttpRequest) -> HttpResponse:
    form = SilenceForm(request.POST, hidden=hidden_of(request))
    if not form.is_valid():
        return _silences_page(request, form, _new_maintenance(request))
    silence = form.save(request.user.get_username())
    note_form(request, "silence.add", str(silence), form)
    outbox.announce("alerts", 0)
    messages.success(request, _("Silenced. What it covers is shown, but told to nobody."))
    return redirect("alert-silences")


@operator_required
@require_POST
@transaction.atomic
def maintenance_new(request: HttpRequest) -> HttpResponse:
    hidden = hidden_of(request)
    form = MaintenanceForm(request.POST, hidden=hidden)
    if not form.is_valid():
        return _silences_page(request, SilenceForm(hidden=hidden), form)
    work = form.save(request.user.get_username())
    note_form(request, "maintenance.add", str(work), form)
    _tell(work)
    messages.success(request, _("The maintenance window is entered."))
    return redirect("alert-silences")


@operator_required
@require_http_methods(["POST"])
@transaction.atomic
def hush_end(request: HttpRequest, what: str, pk: int) -> HttpResponse:
    """From now on it covers nothing; one that has not begun is taken away."""
    row: Silence | Maintenance
    if what == "silence":
        row = get_object_or_404(seen(Silence.objects.all(), hidden_of(request)), pk=pk)
    else:
        row = get_object_or_404(seen(Maintenance.objects.all(), hidden_of(request)), pk=pk)
    note(actor_of(request), f"{what}.end", str(row), before={"until": row.until.isoformat()})
    now = timezone.now()
    if row.starts > now:
        row.delete()
    elif row.until > now:
        row.until = now
        row.save(update_fields=["until"])
    _tell(row)
    return redirect("alert-silences")


def _tell(row: Silence | Maintenance) -> None:
    outbox.announce("alerts", 0)
    if row.node_id:
        outbox.announce("node", row.node_id)
    if row.deployment_id:
        outbox.announce("deployment", row.deployment_id)


def _new_maintenance(request: HttpRequest) -> MaintenanceForm:
    now = timezone.now().replace(second=0, microsecond=0)
    return MaintenanceForm(
        initial={"starts": now.isoformat(), "until": (now + timedelta(hours=2)).isoformat()},
        hidden=hidden_of(request),
    )


def _silences_page(
    request: HttpRequest, silence: SilenceForm, maintenance: MaintenanceForm, opened: bool = False
) -> HttpResponse:
    now = timezone.now()
    since, hidden = now - timedelta(days=7), hidden_of(request)
    return render(
        request,
        "monitor/alert_silences.html",
        {
            "now": now,
            "silences": seen(
                Silence.objects.filter(until__gt=since).select_related(
                    "rule", "node", "deployment"
                ),
                hidden,
            ),
            "works": seen(
                Maintenance.objects.filter(until__gt=since).select_related("node", "deployment"),
                hidden,
            ),
            "silence_form": silence,
            "maintenance_form": maintenance,
            "opened": opened,
            "may_operate": may_operate(request),
        },
        status=422 if silence.errors or maintenance.errors else 200,
    )


urlpatterns = [
    path("alerts/", alerts, name="alerts"),
    path("alerts/silences/", silences, name="alert-silences"),
    path("alerts/silences/new/", silence_new, name="alert-silence-new"),
    path("alerts/maintenance/new/", maintenance_new, name="alert-maintenance-new"),
    re_path(
        r"^alerts/(?P<what>silence|maintenance)/(?P<pk>\d{1,18})/end/$",
        hush_end,
        name="alert-hush-end",
    ),
]
