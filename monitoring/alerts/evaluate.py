"""Every few seconds: all rules over all that was read, by one evaluator at a time."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from monitoring.alerts import bundles, incidents, phases, telling
from monitoring.alerts.fleet import fleet
from monitoring.alerts.grouping import Cover, Place, covered
from monitoring.alerts.kinds import GROWTH, KINDS
from monitoring.alerts.rules import QUIET, judge
from monitoring.alerts.world import Sighting, World
from monitoring.alerts.writing import write
from monitoring.metrics import METRICS
from monitoring.models import Alert, AlertStatus, Maintenance, Rule, Silence

log = logging.getLogger(__name__)

LOCK = 0x7A9D_A1E7
"""Of Postgres' advisory locks, the one that the evaluator holds."""

SWITCHED_OFF = _("Its rule was switched off or changed.")
GONE = _("What it watched is no longer there.")

Key = tuple[int, str, str]


@dataclass
class Outcome:
    new: list[Alert] = field(default_factory=list)
    changed: list[Alert] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    fired: list[Alert] = field(default_factory=list)
    moved: bool = False
    """Whether a page would show anything else than before."""


def evaluate(now: datetime | None = None) -> bool:
    """One round. False when another evaluator was at it."""
    moment = now or timezone.now()
    with transaction.atomic():
        if not _alone():
            return False
        world = World(moment, _growing())
        outcome = _judge_all(world)
        _write(outcome)
        outcome.moved |= _hush(world)
        outcome.moved |= incidents.settle(world)
        telling.plan(world)
        if outcome.moved:
            fleet().changed()
    world.usuals.look_up()
    phases.forget(moment)
    bundles.complete(moment)
    return True


def _growing() -> frozenset[str]:
    """Counters and histograms that some rule looks at: their growth is asked for at once."""
    rules = Rule.objects.filter(enabled=True)
    asked = set(rules.filter(kind="metric").values_list("metric", flat=True))
    counters = {name for name in asked if name in METRICS and METRICS[name].shape != "gauge"}
    kinds = set(rules.values_list("kind", flat=True))
    return frozenset(counters | {GROWTH[kind] for kind in kinds if kind in GROWTH})


def _alone() -> bool:
    """Until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def _judge_all(world: World) -> Outcome:
    outcome = Outcome()
    standing = Alert.objects.filter(status__in=[AlertStatus.PENDING, AlertStatus.FIRING])
    unseen: dict[Key, Alert] = {
        (alert.rule_id or 0, alert.topic, alert.series): alert
        for alert in standing.select_related("node", "deployment")
    }
    rules = list(Rule.objects.filter(enabled=True))
    for rule in rules:
        for sighting in _watched(rule, world):
            _judge(rule, sighting, unseen.pop(_key(rule, sighting), None), world, outcome)
    active = {rule.pk for rule in rules}
    for (rule_id, _topic, _series), alert in unseen.items():
        _end(alert, GONE if rule_id in active else SWITCHED_OFF, world.now, outcome)
    return outcome


def _watched(rule: Rule, world: World) -> Iterator[Sighting]:
    kind = KINDS.get(rule.kind)
    seen: set[Key] = set()
    for sighting in kind.watch(rule, world) if kind else ():
        key = _key(rule, sighting)
        if key not in seen:
            seen.add(key)
            yield sighting


def _key(rule: Rule, sighting: Sighting) -> Key:
    return rule.pk, sighting.topic, sighting.series


def _judge(
    rule: Rule, sighting: Sighting, alert: Alert | None, world: World, outcome: Outcome
) -> None:
    before = alert.state if alert else QUIET
    state, transition = judge(rule.terms, sighting.observation, before, world.now.timestamp())
    if state.phase == "quiet":
        if alert is not None:
            _settle(alert, transition == "resolves", world.now, outcome)
        return
    if alert is None:
        alert = _new(rule, sighting, world.now)
        outcome.new.append(alert)
    else:
        outcome.changed.append(alert)
    alert.state = state
    _note(alert, rule, sighting)
    if transition == "fires":
        alert.status, alert.fired = AlertStatus.FIRING, world.now
        outcome.fired.append(alert)
    outcome.moved |= transition is not None


def _new(rule: Rule, sighting: Sighting, now: datetime) -> Alert:
    return Alert(
        rule=rule,
        kind=rule.kind,
        topic=sighting.topic,
        series=sighting.series,
        node_id=sighting.node,
        deployment_id=sighting.deployment,
        status=AlertStatus.PENDING,
        began=now,
    )


def _note(alert: Alert, rule: Rule, sighting: Sighting) -> None:
    """The rule and the value as they are now."""
    alert.rule_name, alert.severity = rule.name, rule.severity
    alert.above, alert.threshold = rule.above, rule.threshold
    alert.unit = sighting.unit
    observed = sighting.observation
    alert.value, alert.reason = observed.value, observed.reason[:300]
    if observed.value is not None and observed.applies:
        worst = observed.value if alert.worst is None else alert.worst
        alert.worst = max(worst, observed.value) if rule.above else min(worst, observed.value)


def _settle(alert: Alert, resolved: bool, now: datetime, outcome: Outcome) -> None:
    outcome.moved = True
    if not resolved:
        outcome.dropped.append(alert.pk)
        return
    alert.status, alert.resolved = AlertStatus.RESOLVED, now
    outcome.changed.append(alert)


def _end(alert: Alert, why: str, now: datetime, outcome: Outcome) -> None:
    alert.ended_by = why
    _settle(alert, alert.status == AlertStatus.FIRING, now, outcome)


def _write(outcome: Outcome) -> None:
    Alert.objects.bulk_create(outcome.new)
    write(outcome.changed)
    Alert.objects.filter(pk__in=outcome.dropped).delete()


def _hush(world: World) -> bool:
    """Mark what a silence or a maintenance window covers now."""
    now = {"starts__lte": world.now, "until__gt": world.now}
    covers = [
        *(Cover(s.rule_id, s.node_id, s.deployment_id) for s in Silence.objects.filter(**now)),
        *(Cover(None, m.node_id, m.deployment_id) for m in Maintenance.objects.filter(**now)),
    ]
    runs_on = {facts.pk: facts.nodes for facts in world.deployments.values()}
    turned: dict[bool, list[int]] = {True: [], False: []}
    for alert in Alert.objects.filter(status__in=[AlertStatus.PENDING, AlertStatus.FIRING]):
        place = Place(alert.node_id, alert.deployment_id)
        if alert.hushed != (hushed := covered(alert.rule_id, place, covers, runs_on)):
            turned[hushed].append(alert.pk)
    for hushed, keys in turned.items():
        if keys:
            Alert.objects.filter(pk__in=keys).update(hushed=hushed)
    return any(turned.values())
