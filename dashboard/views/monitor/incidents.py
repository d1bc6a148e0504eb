"""Incidents: the list, one with its timeline, and the post-mortems kept of it."""

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from dashboard import outbox
from dashboard.access import seen
from dashboard.audit import actor_of, note
from dashboard.models import Deployment, Node
from dashboard.texts import storable
from dashboard.timeline import known, timeline
from dashboard.views.access import hidden_of, may_operate, operator_required
from monitoring.alerts import bundles
from monitoring.alerts.incidents import acknowledge
from monitoring.models import Alert, Bundle, Incident, Note

PAGE = 25
MARGIN = timedelta(minutes=5)
"""Shown before and after an incident in charts and logs."""
LONGEST_NOTE = 2000


@login_required
@require_GET
def incidents(request: HttpRequest) -> HttpResponse:
    hidden = hidden_of(request)
    shown = seen(Alert.objects.all(), hidden)
    found = _seen(request).select_related("node", "deployment")
    found = found.prefetch_related(Prefetch("alerts", shown))
    pages = Paginator(found.order_by("-opened", "-pk"), PAGE)
    return render(
        request,
        "monitor/incidents.html",
        {
            "page": pages.get_page(request.GET.get("page")),
            "open": _seen(request).filter(closed=None).count(),
            "may_operate": may_operate(request),
        },
    )


@login_required
@require_GET
def incident(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(_seen(request).select_related("node", "deployment"), pk=pk)
    hidden = hidden_of(request)
    rows = seen(row.alerts.select_related("node", "deployment", "rule"), hidden)
    alerts = list(rows.order_by("fired", "pk"))
    since, until = row.opened - MARGIN, (row.closed or timezone.now()) + MARGIN
    return render(
        request,
        "monitor/incident.html",
        {
            "incident": row,
            "alerts": alerts,
            "moments": timeline(row, alerts, hidden),
            "nodes": _nodes(row, alerts),
            "deployments": _deployments(row, alerts),
            "since": int(since.timestamp()),
            "until": int(until.timestamp()),
            "bundles": _bundles(request).filter(incident=row).defer("content"),
            "may_operate": may_operate(request),
        },
    )


def _seen(request: HttpRequest) -> QuerySet[Incident]:
    """Of what this person may see."""
    return seen(Incident.objects.all(), hidden_of(request))


def _bundles(request: HttpRequest) -> QuerySet[Bundle]:
    """A post-mortem tells all of its incident: it is for those who may see all of that."""
    hidden = hidden_of(request)
    rows = seen(Bundle.objects.all(), hidden, "incident__node", "incident__deployment")
    return seen(rows, hidden, "incident__alerts__node", "incident__alerts__deployment")


def _nodes(incident: Incident, alerts: list[Alert]) -> list[Node]:
    keys = known({incident.node_id, *(alert.node_id for alert in alerts)})
    return list(Node.objects.filter(pk__in=keys))


def _deployments(incident: Incident, alerts: list[Alert]) -> list[Deployment]:
    keys = known({incident.deployment_id, *(alert.deployment_id for alert in alerts)})
    return list(Deployment.objects.filter(pk__in=keys))


@operator_required
@require_POST
@transaction.atomic
def incident_acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(_seen(request), pk=pk)
    if acknowledge(row, request.user.get_username(), timezone.now()):
        note(actor_of(request), "incident.acknowledge", str(row))
        outbox.announce("alerts", 0)
    return redirect("incident", pk)


@operator_required
@require_POST
@transaction.atomic
def incident_note(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(_seen(request), pk=pk)
    text = storable(request.POST.get("text", "")).strip()
    if not text or len(text) > LONGEST_NOTE:
        messages.error(
            request, _("A note has 1 to %(count)s characters.") % {"count": LONGEST_NOTE}
        )
    else:
        note(actor_of(request), "incident.note", str(row), after={"text": text})
        Note.objects.create(incident=row, by=request.user.get_username(), text=text)
        outbox.announce("alerts", 0)
    return redirect("incident", pk)


@operator_required
@require_POST
@transaction.atomic
def incident_bundle(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(_seen(request), pk=pk)
    note(actor_of(request), "incident.bundle", str(row))
    bundles.ask(row, request.user.get_username(), timezone.now())
    messages.success(request, _("The post-mortem is made; it is complete in half a minute."))
    return redirect("incident", pk)


@login_required
@require_GET
def bundle(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(_bundles(request), pk=pk)
    answer = HttpResponse(bytes(row.content), content_type="application/gzip")
    name = f"tandem-incident-{row.incident_id}-{row.pk}.json.gz"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


urlpatterns = [
    path("incidents/", incidents, name="incidents"),
    path("incidents/<int:pk>/", incident, name="incident"),
    path("incidents/<int:pk>/acknowledge/", incident_acknowledge, name="incident-acknowledge"),
    path("incidents/<int:pk>/note/", incident_note, name="incident-note"),
    path("incidents/<int:pk>/bundle/", incident_bundle, name="incident-bundle"),
    path("incidents/bundles/<int:pk>/", bundle, name="incident-bundle-download"),
]
