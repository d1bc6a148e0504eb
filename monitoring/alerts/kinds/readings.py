"""Rules over any metric there is."""

from collections.abc import Iterator
from dataclasses import replace

from django.utils.translation import gettext_noop as _

from monitoring.alerts.rules import Observation
from monitoring.alerts.world import REMEMBERED, Seen, Sighting, World
from monitoring.metrics import METRICS
from monitoring.models import Rule
from monitoring.samples import series_key
from monitoring.scopes import Subject

NOT_GROWN = _("It was not read in the last 5 minutes.")
NO_USUAL = _("There is too little data to tell what is usual.")
EVERYTHING = ("node", "gpu", "engine", "rank")


def metric(rule: Rule, world: World) -> Iterator[Sighting]:
    known = METRICS.get(rule.metric)
    if known is not None and known.shape != "gauge":
        yield from _growth(rule, world)
        return
    for subject, seen in matching(rule, world):
        yield world.sighting(subject, seen.unit, seen.observation, seen.key)


def unusual(rule: Rule, world: World) -> Iterator[Sighting]:
    """A reading divided by its median of the last day."""
    for subject, seen in matching(rule, world):
        yield world.sighting(subject, "times", against_usual(world, subject, seen), seen.key)


def absent(rule: Rule, world: World) -> Iterator[Sighting]:
    """Of nodes that are online: a silent one has a rule of its own."""
    for subject in world.of_role(rule, "node", "engine"):
        if subject.node is not None and not world.nodes[subject.node].online:
            yield world.sighting(subject, "seconds", Observation(None, applies=False), rule.metric)
        elif observation := _age(rule, world, subject):
            yield world.sighting(subject, "seconds", observation, rule.metric)


def _age(rule: Rule, world: World, subject: Subject) -> Observation | None:
    reading = world.latest.get(subject.topic)
    if reading is None:
        return Observation(REMEMBERED.total_seconds())
    if not rule.metric:
        return Observation(max(0.0, (world.now - reading.at).total_seconds()))
    found = [seen for seen in world.seen(subject.topic) if seen.metric == rule.metric]
    if not found:
        return None
    read = any(seen.value is not None for seen in found)
    return Observation(0.0 if read else float(rule.for_seconds + 1) + rule.threshold)


def matching(rule: Rule, world: World) -> Iterator[tuple[Subject, Seen]]:
    for subject in world.of_role(rule, *EVERYTHING):
        for seen in world.seen(subject.topic):
            if seen.metric == rule.metric and _fits(rule, seen.scope, seen.label):
                yield subject, seen


def against_usual(world: World, subject: Subject, seen: Seen) -> Observation:
    if seen.value is None:
        return seen.observation
    usual = world.usuals.of(subject, seen.metric, seen.key)
    if usual is None or not usual.value:
        return Observation(None, reason=NO_USUAL)
    return Observation(seen.value / usual.value)


def _fits(rule: Rule, scope: str, label: str) -> bool:
    """A rule may name several labels, with commas between them."""
    if rule.scope not in ("", scope):
        return False
    return rule.label in ("", label) or label in (one.strip() for one in rule.label.split(","))


def _growth(rule: Rule, world: World) -> Iterator[Sighting]:
    grown = world.grown(rule.metric)
    for subject, seen in matching(rule, world):
        amounts = [
            gain.amount
            for gain in grown.get(subject.topic, [])
            if series_key(gain.metric, gain.scope, gain.label) == seen.key
        ]
        observation = Observation(sum(amounts) if amounts else None, reason=NOT_GROWN)
        if seen.value is None:
            observation = replace(observation, reason=seen.reason)
        yield world.sighting(subject, seen.unit, observation, seen.key)
