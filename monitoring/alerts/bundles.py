"""Post-mortems: everything known of the seconds around an incident, in one file that stays."""

import gzip
import hashlib
import re
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.utils.translation import override

from monitoring.alerts import phases
from monitoring.alerts.fleet import fleet
from monitoring.models import Alert, Bundle, Incident, Layout, Reading
from monitoring.scopes import Subject, launch_of, subjects

BEFORE = timedelta(seconds=120)
AFTER = timedelta(seconds=30)
LONGEST = timedelta(minutes=10)
"""Of readings in one bundle."""
FORMAT = 1


def begin(incident: Incident, now: datetime) -> None:
    """Of a critical incident, once; made at once and again when what follows is known."""
    if not incident.bundles.filter(asked_by="").exists():
        _make(incident, now, "")


def ask(incident: Incident, by: str, now: datetime) -> Bundle:
    """On demand, about the last two minutes and the next half."""
    return _make(incident, now, by)


def complete(now: datetime) -> None:
    for bundle in Bundle.objects.filter(completed=None, completes__lte=now)[:4]:
        bundle.until = bundle.completes
        bundle.completed = now
        _fill(bundle, now)


def opened(bundle: Bundle) -> Any:
    return msgspec.json.decode(gzip.decompress(bytes(bundle.content)))


def _make(incident: Incident, now: datetime, by: str) -> Bundle:
    since = max(incident.opened if not by else now, now - LONGEST) - BEFORE
    bundle = Bundle(incident=incident, asked_by=by, since=since, until=now, completes=now + AFTER)
    _fill(bundle, now)
    return bundle


def _fill(bundle: Bundle, now: datetime) -> None:
    with override("en"):
        content = msgspec.json.encode(_gather(bundle, now))
    bundle.content = gzip.compress(content, mtime=0)
    bundle.sha256 = hashlib.sha256(bundle.content).hexdigest()
    bundle.save()


def _gather(bundle: Bundle, now: datetime) -> dict[str, Any]:
    incident = bundle.incident
    alerts = list(incident.alerts.select_related("node", "deployment").order_by("began"))
    nodes = {alert.node_id for alert in alerts} | {incident.node_id}
    deployments = {alert.deployment_id for alert in alerts} | {incident.deployment_id}
    about = list(_affected(nodes, deployments, [alert.topic for alert in alerts]))
    launches = sorted({launch for one in about if (launch := launch_of(one.subject))})
    since, until = bundle.since, bundle.until
    whole = bundle.completed is not None
    return {
        "format": FORMAT,
        "tandem": settings.VERSION,
        "made": now,
        "complete": whole,
        "since": since,
        "until": until,
        "incident": _told(incident),
        "alerts": [_alert(alert) for alert in alerts],
        "notes": [{"at": n.at, "by": n.by, "text": n.text} for n in incident.notes.all()],
        "readings": _readings(about, since, until),
        "rank_phases": phases.between(launches, since, until),
        **fleet().dossier(_known(nodes), _known(deployments), since, until),
    }


def _known(keys: Collection[int | None]) -> list[int]:
    return sorted(key for key in keys if key is not None)


def _affected(
    nodes: Collection[int | None], deployments: Collection[int | None], topics: list[str]
) -> Iterator[Subject]:
    """Once each; launches that have ended meanwhile are known by their alerts alone."""
    seen: set[str] = set()
    found = [one for pk in _known(nodes) for one in subjects("node", pk)]
    found += [one for pk in _known(deployments) for one in subjects("deployment", pk)]
    for launch in sorted({launch for topic in topics if (launch := launch_of(topic))}):
        of_it = Layout.objects.filter(subject__regex=f"^launch:{re.escape(launch)}(:|$)")
        names = of_it.values_list("subject", flat=True).distinct().order_by("subject")
        found += [Subject(name, name) for name in names]
    for one in found:
        if one.topic not in seen and not one.subject.startswith("group:"):
            seen.add(one.topic)
            yield one


def _told(incident: Incident) -> dict[str, Any]:
    return {
        "number": incident.pk,
        "title": incident.title,
        "about": incident.about,
        "severity": incident.severity,
        "opened": incident.opened,
        "closed": incident.closed,
        "reopened": incident.reopened,
        "acknowledged": incident.acknowledged,
        "acknowledged_by": incident.acknowledged_by,
        "simulated": incident.simulated,
    }


def _alert(alert: Alert) -> dict[str, Any]:
    return {
        "rule": alert.rule_name,
        "kind": alert.kind,
        "topic": alert.topic,
        "series": alert.series,
        "where": alert.place,
        "severity": alert.severity,
        "status": alert.status,
        "above": alert.above,
        "threshold": alert.threshold,
        "unit": alert.unit,
        "value": alert.value,
        "worst": alert.worst,
        "reason": alert.reason,
        "began": alert.began,
        "fired": alert.fired,
        "resolved": alert.resolved,
    }


COLUMNS = ["metric", "unit", "source", "kind", "scope", "reason", "label"]


def _readings(about: list[Subject], since: datetime, until: datetime) -> list[dict[str, Any]]:
    """As they were read: every row of every layout, with what its numbers mean."""
    found = []
    for one in about:
        rows = Reading.objects.filter(layout__subject=one.subject, at__range=(since, until))
        if one.node is not None:
            rows = rows.filter(layout__node=one.node)
        layouts: dict[int, dict[str, Any]] = {}
        for row in rows.select_related("layout").order_by("at"):
            told = layouts.setdefault(
                row.layout_id, {"columns": COLUMNS, "fields": row.layout.fields, "rows": []}
            )
            told["rows"].append([row.at, row.numbers])
        found.append(
            {
                "topic": one.topic,
                "subject": one.subject,
                "node": one.node_name,
                "deployment": one.deployment,
                "layouts": list(layouts.values()),
            }
        )
    return found
