"""What the tests of alerts share: readings at any time, rules, and rounds of evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from django.utils import timezone

from dashboard.choices import NodeStatus
from dashboard.models import Node
from monitoring.alerts.evaluate import evaluate
from monitoring.metrics import CPU_UTILIZATION
from monitoring.models import Alert, Rule
from monitoring.samples import Sample, measured, unavailable
from monitoring.storage.store import store
from tests.monitoring.cast import frame_of, make_node

_numbers = count(1)
STEP = 5.0


def cpu(value: float | None) -> Sample:
    if value is None:
        return unavailable(CPU_UTILIZATION, "Nobody looked.", source="host", scope="host")
    return measured(CPU_UTILIZATION, value, source="host: /proc/stat", scope="host")


def only_rule(**values: Any) -> Rule:
    """The one rule that is switched on: processors above 90 % for 10 s."""
    Rule.objects.update(enabled=False)
    return Rule.objects.create(
        **{
            "name": "Busy box",
            "kind": "metric",
            "metric": CPU_UTILIZATION.name,
            "threshold": 0.9,
            "clear": 0.8,
            "for_seconds": 10,
            "clear_seconds": 10,
            **values,
        }
    )


def online(name: str = "box-1") -> Node:
    node = make_node(name)
    node.status = NodeStatus.ONLINE
    node.last_seen = node.connected_at = timezone.now()
    node.save()
    return node


def tell(node: Node, at: datetime, samples: Sequence[Sample]) -> None:
    """One frame, stored."""
    store([frame_of(node.pk, next(_numbers), at.timestamp(), samples)])


@dataclass
class Clock:
    """Evaluates at moments of its own."""

    now: datetime = field(default_factory=timezone.now)

    def round(self, *told: tuple[Node, Sequence[Sample]], seconds: float = STEP) -> None:
        self.now += timedelta(seconds=seconds)
        for node, samples in told:
            tell(node, self.now, samples)
            Node.objects.filter(pk=node.pk).update(last_seen=self.now)
        assert evaluate(self.now)

    def rounds(
        self, times: int, *told: tuple[Node, Sequence[Sample]], seconds: float = STEP
    ) -> None:
        for _ in range(times):
            self.round(*told, seconds=seconds)


def the_alert() -> Alert:
    return Alert.objects.select_related("node", "deployment", "incident").get()
