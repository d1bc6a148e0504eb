"""What one evaluation sees: every subject's newest reading, and the fleet around it."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.utils.translation import gettext_noop as _

from monitoring.alerts.fleet import DeploymentFacts, NodeFacts, fleet
from monitoring.alerts.phases import pulses
from monitoring.alerts.rules import Observation
from monitoring.alerts.usual import Usuals
from monitoring.metrics import REQUESTS_RUNNING, Metric
from monitoring.models import NodeLimits, Rule
from monitoring.samples import series_key
from monitoring.scopes import Subject, subjects
from monitoring.storage.series import Gain, Latest, gains, latest

FRESH = timedelta(seconds=12)
"""A reading older than that says nothing of now."""
MINUTE = timedelta(minutes=1)
WINDOW = timedelta(minutes=5)
"""Over which growth and percentiles are taken."""
REMEMBERED = timedelta(minutes=10)
"""How far back a subject's newest reading is looked for."""

NOT_READ = _("This is not read here.")
STALE = _("Nothing has been read for a while.")


@dataclass(frozen=True)
class Seen:
    """One number of a subject's newest reading."""

    metric: str
    unit: str
    scope: str
    label: str
    value: float | None
    reason: str

    @property
    def key(self) -> str:
        return series_key(self.metric, self.scope, self.label)

    @property
    def observation(self) -> Observation:
        return Observation(self.value, reason=self.reason)


@dataclass(frozen=True)
class Sighting:
    """What a rule observes at one place. `topic` and `series` tell its places apart."""

    topic: str
    unit: str
    observation: Observation
    series: str = ""
    node: int | None = None
    deployment: int | None = None


class World:
    def __init__(self, now: datetime, growing: frozenset[str] = frozenset()) -> None:
        """`growing`: metrics whose growth will be asked for."""
        self.now = now
        self._growing = growing
        self._seen: dict[str, list[Seen]] = {}
        self._gains: dict[str, dict[str, list[Gain]]] = {}

    @cached_property
    def subjects(self) -> list[Subject]:
        return subjects("everything")

    @cached_property
    def latest(self) -> dict[str, Latest]:
        return latest(self.subjects, REMEMBERED)

    @cached_property
    def nodes(self) -> dict[int, NodeFacts]:
        return {facts.pk: facts for facts in fleet().nodes()}

    @cached_property
    def deployments(self) -> dict[int, DeploymentFacts]:
        return {facts.pk: facts for facts in fleet().deployments()}

    @cached_property
    def usuals(self) -> Usuals:
        return Usuals(self.now)

    @cached_property
    def pulses(self) -> dict[str, float]:
        """Subject of a rank of a running engine -> seconds since it last said anything."""
        return pulses(self.now)

    @cached_property
    def busy_nodes(self) -> frozenset[int]:
        """Nodes with ranks of an engine that answers somebody."""
        return frozenset(
            node
            for subject in self.subjects
            if subject.role == "engine"
            and self.observe(subject.topic, REQUESTS_RUNNING).value
            and (deployment := self.deployments.get(self.deployment_of(subject) or 0))
            for node in deployment.nodes
        )

    @cached_property
    def held_back(self) -> dict[int, dict[str, Any]]:
        """Node -> what quiet hours and power caps hold it to now."""
        rows = NodeLimits.objects.exclude(wanted={})
        return dict(rows.values_list("node", "wanted"))

    @cached_property
    def _node_names(self) -> dict[str, int]:
        return {facts.name: facts.pk for facts in self.nodes.values()}

    @cached_property
    def _deployment_names(self) -> dict[str, int]:
        return {facts.name: facts.pk for facts in self.deployments.values()}

    def of_role(self, rule: Rule, *roles: str) -> Iterator[Subject]:
        """The subjects that the rule is about."""
        for subject in self.subjects:
            if subject.role in roles and self._concerns(rule, subject):
                yield subject

    def _concerns(self, rule: Rule, subject: Subject) -> bool:
        if rule.node_id is not None and self.node_of(subject) != rule.node_id:
            return False
        return rule.deployment_id is None or self.deployment_of(subject) == rule.deployment_id

    def node_of(self, subject: Subject) -> int | None:
        """Whose trouble it is: an engine as a whole is no node's."""
        if subject.role == "engine":
            return None
        return subject.node or self._node_names.get(subject.node_name)

    def deployment_of(self, subject: Subject) -> int | None:
        return self._deployment_names.get(subject.deployment)

    def sighting(
        self, subject: Subject, unit: str, observation: Observation, series: str = ""
    ) -> Sighting:
        return Sighting(
            subject.topic,
            unit,
            observation,
            series,
            self.node_of(subject),
            self.deployment_of(subject),
        )

    def seen(self, topic: str) -> list[Seen]:
        """What its newest reading says; a stale one has no values."""
        if topic not in self._seen:
            self._seen[topic] = list(self._read(topic))
        return self._seen[topic]

    def _read(self, topic: str) -> Iterator[Seen]:
        reading = self.latest.get(topic)
        if reading is None:
            return
        stale = self.now - reading.at > FRESH
        for field, number in zip(reading.fields, reading.numbers, strict=True):
            metric, unit, _source, _kind, scope, reason, label = field
            value = None if stale else number
            yield Seen(metric, unit, scope, label, value, STALE if stale else reason)

    def find(
        self, topic: str, metric: Metric, scope: str | None = None, label: str | None = None
    ) -> Seen | None:
        for seen in self.seen(topic):
            fits = scope in (None, seen.scope) and label in (None, seen.label)
            if fits and seen.metric == metric.name:
                return seen
        return None

    def observe(
        self, topic: str, metric: Metric, scope: str | None = None, label: str | None = None
    ) -> Observation:
        seen = self.find(topic, metric, scope, label)
        return seen.observation if seen else Observation(None, reason=NOT_READ)

    def grown(self, metric: str) -> dict[str, list[Gain]]:
        """Topic -> what its series of the metric grew by in the last five whole minutes."""
        if metric not in self._gains:
            wanted = self._growing | {metric}
            self._gains |= {name: defaultdict(list) for name in wanted}
            until = self.now.replace(second=0, microsecond=0)
            telling = [one for one in self.subjects if self._tells(one.topic, wanted)]
            for gain in gains(telling, wanted, until - WINDOW, until, MINUTE) if telling else ():
                self._gains[gain.metric][gain.topic].append(gain)
        return self._gains[metric]

    def _tells(self, topic: str, metrics: frozenset[str]) -> bool:
        reading = self.latest.get(topic)
        return reading is not None and any(field[0] in metrics for field in reading.fields)


Watch = Callable[[Rule, World], Iterator[Sighting]]
