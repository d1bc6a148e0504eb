"""Rules about nodes and their accelerators."""

from collections.abc import Iterator

from django.utils.translation import gettext_noop as _

from monitoring import metrics as m
from monitoring.alerts.rules import Observation
from monitoring.alerts.world import Sighting, World
from monitoring.models import Rule
from monitoring.samples import series_key
from monitoring.scopes import Subject

NEVER = _("Its agent has never connected.")
NO_LIMIT = _("Neither a limit nor a day’s power is known.")


def silent(rule: Rule, world: World) -> Iterator[Sighting]:
    """A node that was never there is not missed."""
    for subject in world.of_role(rule, "node"):
        node = world.nodes.get(subject.node or 0)
        if node is None:
            continue
        if not node.joined or node.heard is None:
            observation = Observation(None, applies=False, reason=NEVER)
        else:
            age = max(0.0, (world.now - node.heard).total_seconds())
            observation = Observation(age)
        yield world.sighting(subject, "seconds", observation)


def held(rule: Rule, world: World) -> Iterator[Sighting]:
    for subject in world.of_role(rule, "node"):
        node = world.nodes.get(subject.node or 0)
        if node is not None:
            since = node.held or world.now
            age = max(0.0, (world.now - since).total_seconds())
            yield world.sighting(subject, "seconds", Observation(age))


def headroom(rule: Rule, world: World) -> Iterator[Sighting]:
    for subject in world.of_role(rule, "node"):
        free = world.observe(subject.topic, m.MEMORY_AVAILABLE)
        floor = world.observe(subject.topic, m.MEMORY_FLOOR).value or 0.0
        if free.value is not None:
            free = Observation(free.value - floor)
        yield world.sighting(subject, "bytes", free)


def clock(rule: Rule, world: World) -> Iterator[Sighting]:
    for subject in world.of_role(rule, "node"):
        skew = world.observe(subject.topic, m.CLOCK_SKEW)
        if skew.value is not None:
            skew = Observation(abs(skew.value))
        yield world.sighting(subject, "seconds", skew)


def low_power(rule: Rule, world: World) -> Iterator[Sighting]:
    for subject in world.of_role(rule, "gpu"):
        power = world.find(subject.topic, m.POWER, "accelerator")
        if power is None:
            continue
        observation = power.observation
        if not _at_work(world, subject.node) or _held_back(world, subject):
            observation = Observation(observation.value, applies=False)
        elif power.value is not None:
            expected = _expected(world, subject)
            observation = (
                Observation(power.value / expected)
                if expected
                else Observation(None, reason=NO_LIMIT)
            )
        yield world.sighting(subject, "ratio", observation)


def _at_work(world: World, node: int | None) -> bool:
    """Whether an engine with ranks on the node is answering anybody."""
    return node in world.busy_nodes


def _held_back(world: World, subject: Subject) -> bool:
    """Whether quiet hours make it draw less. A power limit alone does not hide what is wrong where
    it can be read, because power is set against it."""
    held = world.held_back.get(subject.node or 0)
    if held is None:
        return False
    by_power_alone = not held.get("clock_hertz") and not held.get("batch_caps")
    return not (by_power_alone and world.observe(subject.topic, m.GPU_POWER_LIMIT).value)


def _expected(world: World, subject: Subject) -> float | None:
    limit = world.observe(subject.topic, m.GPU_POWER_LIMIT).value
    if limit:
        return limit
    key = series_key(m.POWER.name, "accelerator", "")
    usual = world.usuals.of(subject, m.POWER.name, key)
    return usual.highest if usual else None
