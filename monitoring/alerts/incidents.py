"""Incidents follow their alerts: opened by the first, ended with the last."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from django.db.models import Exists, OuterRef, Q

from monitoring.alerts import bundles
from monitoring.alerts.grouping import REOPENS, Open, Place, home
from monitoring.alerts.world import World
from monitoring.models import Alert, AlertStatus, Incident, Severity


def settle(world: World) -> bool:
    """Bring incidents in line with what fires now; whether any changed."""
    changed = _take_in(world)
    changed |= _close(world.now)
    return changed


def acknowledge(incident: Incident, by: str, now: datetime) -> bool:
    """False when somebody did before."""
    mine = Incident.objects.filter(pk=incident.pk, acknowledged=None)
    return bool(mine.update(acknowledged=now, acknowledged_by=by))


def _take_in(world: World) -> bool:
    """Alerts that fire and belong nowhere yet. What was silenced comes in once it no longer is."""
    homeless = Alert.objects.filter(status=AlertStatus.FIRING, hushed=False, incident=None)
    waiting = sorted(homeless.select_related("node", "deployment"), key=_boxes_first)
    if not waiting:
        return _regrade(world)
    runs_on = {facts.pk: facts.nodes for facts in world.deployments.values()}
    recent = {incident.pk: incident for incident in _recent(world.now)}
    joined: dict[int, list[int]] = defaultdict(list)
    for alert in waiting:
        places = (_as_open(incident) for incident in recent.values())
        place = Place(alert.node_id, alert.deployment_id)
        found = home(place, places, runs_on, world.now)
        incident = recent[found] if found else _open(alert, world)
        recent[incident.pk] = incident
        if incident.closed:
            _reopen(incident)
        joined[incident.pk].append(alert.pk)
    for pk, keys in joined.items():
        Alert.objects.filter(pk__in=keys).update(incident=pk)
    _regrade(world)
    return True


def _boxes_first(alert: Alert) -> tuple[bool, int, int]:
    """A dead box explains what happens to the engines on it, so it names the incident."""
    return alert.node_id is None, -Severity(alert.severity).rank, alert.pk


def _recent(now: datetime) -> Iterable[Incident]:
    return Incident.objects.filter(Q(closed=None) | Q(closed__gt=now - REOPENS)).order_by("pk")


def _as_open(incident: Incident) -> Open:
    place = Place(incident.node_id, incident.deployment_id)
    return Open(incident.pk, place, incident.opened, incident.closed)


def _open(alert: Alert, world: World) -> Incident:
    subject = alert.node or alert.deployment
    return Incident.objects.create(
        node=alert.node,
        deployment=alert.deployment if alert.node is None else None,
        about=subject.name if subject else "",
        title=alert.rule_name,
        severity=alert.severity,
        opened=world.now,
        simulated=_simulated(alert, world),
    )


def _simulated(alert: Alert, world: World) -> bool:
    """Of a box that is made up, or of a deployment that runs on one."""
    facts = world.deployments.get(alert.deployment_id or 0)
    places = {alert.node_id} if alert.node_id else set(facts.nodes if facts else ())
    return any(pk in world.nodes and world.nodes[pk].simulated for pk in places if pk)


def _reopen(incident: Incident) -> None:
    incident.closed, incident.acknowledged, incident.acknowledged_by = None, None, ""
    incident.reopened += 1
    incident.save(update_fields=["closed", "acknowledged", "acknowledged_by", "reopened"])


def _regrade(world: World) -> bool:
    """An incident is as grave as the gravest alert that it has had, and named after it."""
    changed = False
    incidents = {one.pk: one for one in Incident.objects.filter(closed=None)}
    alerts = Alert.objects.filter(incident__in=incidents).order_by("fired", "pk")
    for alert in alerts:
        assert alert.incident_id is not None
        incident = incidents[alert.incident_id]
        if Severity(alert.severity).rank > Severity(incident.severity).rank:
            incident.severity, incident.title = alert.severity, alert.rule_name
            incident.save(update_fields=["severity", "title"])
            changed = True
    for incident in incidents.values():
        if incident.severity == Severity.CRITICAL:
            bundles.begin(incident, world.now)
    return changed


def _close(now: datetime) -> bool:
    still = Alert.objects.filter(incident=OuterRef("pk"), status=AlertStatus.FIRING)
    over = Incident.objects.filter(~Exists(still), closed=None)
    return bool(over.update(closed=now))
