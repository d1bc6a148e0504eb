"""Rules about engines, their ranks and what people experience."""

from collections.abc import Iterator

from django.utils.translation import gettext_noop as _

from monitoring import metrics as m
from monitoring.alerts.kinds.readings import against_usual
from monitoring.alerts.rules import Observation
from monitoring.alerts.world import Sighting, World
from monitoring.charts.histograms import bound, quantile
from monitoring.metrics import Metric
from monitoring.models import Rule
from monitoring.scopes import Subject

SHARE = 0.95
LEAST_REQUESTS = 5

NO_STEP = _("No step was made.")
NOTHING_COUNTED = _("Too few requests ended in the last 5 minutes.")
NO_TARGET = _("The deployment has no target time per token.")


def hung(rule: Rule, world: World) -> Iterator[Sighting]:
    for subject in world.of_role(rule, "engine"):
        yield world.sighting(subject, "seconds", world.observe(subject.topic, m.PROGRESS_AGE))
    for subject in world.of_role(rule, "rank"):
        age = world.pulses.get(subject.subject)
        if age is not None:
            yield world.sighting(subject, "seconds", Observation(age))


def slow(rule: Rule, world: World) -> Iterator[Sighting]:
    for subject in world.of_role(rule, "rank"):
        seen = world.find(subject.topic, m.STEP_SECONDS)
        if seen is None:
            continue
        if seen.value is None:  # Idle ranks make no steps, and are slow at nothing.
            observation = Observation(None, applies=False, reason=NO_STEP)
        else:
            observation = against_usual(world, subject, seen)
        yield world.sighting(subject, "times", observation)


def cache_full(rule: Rule, world: World) -> Iterator[Sighting]:
    for subject in world.of_role(rule, "engine"):
        usage = world.observe(subject.topic, m.KV_USAGE)
        waiting = world.observe(subject.topic, m.REQUESTS_WAITING).value
        if waiting == 0:
            usage = Observation(usage.value, applies=False)
        yield world.sighting(subject, "ratio", usage)


def first_token(rule: Rule, world: World) -> Iterator[Sighting]:
    for subject in world.of_role(rule, "engine"):
        yield world.sighting(subject, "seconds", _percentile(world, subject, m.FIRST_TOKEN_BUCKET))


def token_target(rule: Rule, world: World) -> Iterator[Sighting]:
    for subject in world.of_role(rule, "engine"):
        deployment = world.deployments.get(world.deployment_of(subject) or 0)
        target = deployment.token_seconds if deployment else None
        if target is None:
            observation = Observation(None, applies=False, reason=NO_TARGET)
        else:
            observation = _percentile(world, subject, m.INTER_TOKEN_BUCKET)
            if observation.value is not None:
                observation = Observation(observation.value / target)
        yield world.sighting(subject, "times", observation)


def errors(rule: Rule, world: World) -> Iterator[Sighting]:
    grown = world.grown(m.REQUESTS_FINISHED.name)
    for subject in world.of_role(rule, "engine"):
        gains = grown.get(subject.topic, [])
        total = sum(gain.amount for gain in gains)
        failed = sum(gain.amount for gain in gains if gain.label.endswith("error"))
        if total < LEAST_REQUESTS:
            observation = Observation(None, applies=False, reason=NOTHING_COUNTED)
        else:
            observation = Observation(failed / total)
        yield world.sighting(subject, "ratio", observation)


def _percentile(world: World, subject: Subject, metric: Metric) -> Observation:
    """Nobody who asked is nobody who waited: without requests the rule has nothing to say."""
    bars: dict[float, float] = {}
    for gain in world.grown(metric.name).get(subject.topic, []):
        upper = bound(gain.label)
        if upper is not None:
            bars[upper] = bars.get(upper, 0.0) + gain.amount
    found = quantile(bars.items(), SHARE)
    if found is None:
        return Observation(None, applies=False, reason=NOTHING_COUNTED)
    return Observation(found.value)
