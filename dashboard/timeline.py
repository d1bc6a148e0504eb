"""What happened around an incident, in one row of time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.access import seen
from dashboard.models import Event, Job
from monitoring.models import Alert, Incident
from monitoring.scopes import NOTHING, Hidden

AROUND = timedelta(minutes=5)
"""Before the incident and after it."""
MOST = 200

TONES = {"critical": "error", "warning": "warning", "note": "info"}


@dataclass(frozen=True)
class Moment:
    at: datetime
    level: str
    """`info`, `warning` or `error`."""
    what: str
    """Whose moment: alert, event, job, note or message."""
    text: str
    about: str = ""
    url: str = ""


def timeline(incident: Incident, alerts: list[Alert], hidden: Hidden = NOTHING) -> list[Moment]:
    """The oldest first."""
    nodes = known({incident.node_id, *(alert.node_id for alert in alerts)})
    deployments = known({incident.deployment_id, *(alert.deployment_id for alert in alerts)})
    since = incident.opened - AROUND
    until = (incident.closed or timezone.now()) + AROUND
    mine = Q(node__in=nodes) | Q(deployment__in=deployments)
    found = [
        *_alerts(alerts),
        *_events(mine, since, until, hidden),
        *_jobs(deployments, since, until),
        *_people(incident),
        *_messages(incident),
    ]
    return sorted(found, key=lambda moment: moment.at)


def known(keys: Iterable[int | None]) -> set[int]:
    """Those of rows that are still there."""
    return {key for key in keys if key is not None}


def _alerts(alerts: list[Alert]) -> Iterator[Moment]:
    for alert in alerts:
        value = alert.value_text if not alert.resolved else ""
        if alert.fired:
            yield Moment(alert.fired, TONES[alert.severity], _("Alert"), alert.text, value)
        if alert.resolved:
            over = _("%(alert)s: over") % {"alert": alert.text}
            yield Moment(alert.resolved, "info", _("Alert"), over, alert.ending)


def _events(mine: Q, since: datetime, until: datetime, hidden: Hidden) -> Iterator[Moment]:
    events = Event.objects.filter(mine, at__range=(since, until))
    shown = seen(events.select_related("node", "deployment"), hidden)
    for event in shown[:MOST]:
        subject = event.deployment or event.node
        url = ""
        if event.deployment:
            url = reverse("deployment-detail", args=[event.deployment.name])
        elif event.node:
            url = reverse("node-detail", args=[event.node.name])
        about = subject.name if subject else ""
        yield Moment(event.at, event.level, _("Event"), event.text, about, url)


def _jobs(deployments: set[int], since: datetime, until: datetime) -> Iterator[Moment]:
    jobs = Job.objects.filter(deployment__in=deployments, created__range=(since, until))
    for job in jobs.select_related("deployment")[:MOST]:
        url = reverse("deployment-detail", args=[job.deployment.name])
        kind, about = job.get_kind_display(), job.deployment.name
        yield Moment(job.created, "info", _("Job"), _("%(job)s begins") % {"job": kind}, about, url)
        if job.finished_at:
            level = "error" if job.status == "failed" else "info"
            text = _("%(job)s: %(status)s") % {"job": kind, "status": job.get_status_display()}
            yield Moment(job.finished_at, level, _("Job"), text, about, url)


def _people(incident: Incident) -> Iterator[Moment]:
    if incident.acknowledged:
        text = _("%(name)s has taken it on") % {"name": incident.acknowledged_by}
        yield Moment(incident.acknowledged, "info", _("Note"), text)
    for note in incident.notes.all():
        yield Moment(note.at, "info", _("Note"), note.text, note.by)


def _messages(incident: Incident) -> Iterator[Moment]:
    for delivery in incident.deliveries.select_related("channel"):
        parts = {"channel": delivery.channel, "occasion": delivery.get_occasion_display()}
        text = _("%(occasion)s → %(channel)s") % parts
        level = "error" if delivery.status == "failed" else "info"
        about = " · ".join(filter(None, (delivery.get_status_display(), delivery.answer_text)))
        yield Moment(delivery.sent or delivery.created, level, _("Message"), text, about)
