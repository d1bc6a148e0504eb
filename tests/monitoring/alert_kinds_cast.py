"""What the tests of rules' kinds share: a world with readings, and what a rule sees of it."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from dashboard.models import Deployment, Node
from engine.protocol.agent import Accelerator
from monitoring.alerts.kinds import KINDS
from monitoring.alerts.rules import Observation
from monitoring.alerts.world import Sighting, World
from monitoring.metrics import Metric
from monitoring.models import Rule
from monitoring.samples import Sample, measured, unavailable
from monitoring.storage.series import Gain
from tests.dashboard.pages_cast import HARDWARE
from tests.monitoring.alert_cast import online, tell
from tests.monitoring.cast import launch

LAUNCH = "launch:abc"


def host(metric: Metric, value: float | None, **more: Any) -> Sample:
    given = {"source": "host", "scope": "host", **more}
    if value is None:
        return unavailable(metric, "Not read here.", **given)
    return measured(metric, value, **given)


def engine(metric: Metric, value: float, rank: int | None = None, label: str = "") -> Sample:
    subject = LAUNCH if rank is None else f"{LAUNCH}:rank{rank}"
    return measured(metric, value, source="engine", scope="engine", subject=subject, label=label)


def look(kind: str, *told: tuple[Node, Sequence[Sample]], **values: Any) -> list[Sighting]:
    now = timezone.now()
    for node, samples in told:
        tell(node, now, samples)
    rule = Rule(name="R", kind=kind, threshold=values.pop("threshold", 1), clear=1, **values)
    return list(KINDS[kind].watch(rule, World(now)))


def one(kind: str, *told: tuple[Node, Sequence[Sample]], **values: Any) -> Observation:
    [sighting] = look(kind, *told, **values)
    return sighting.observation


def gains(monkeypatch: pytest.MonkeyPatch, metric: Metric, by_label: dict[str, float]) -> None:
    """Counters that grew within the last minutes, and are told."""
    for node in Node.objects.all():
        told = [engine(metric, 1.0, label=label) for label in by_label] or [engine(metric, 1.0)]
        tell(node, timezone.now(), told)
    found = [
        Gain(LAUNCH, metric.name, "engine", label, "measured", 0.0, amount, 60.0)
        for label, amount in by_label.items()
    ]
    monkeypatch.setattr("monitoring.alerts.world.gains", lambda *_: found)


@pytest.fixture
def deployment() -> Deployment:
    return launch("abc", [online()])


def gpu(metric: Metric, value: float) -> Sample:
    return measured(metric, value, source="nvml", scope="accelerator", subject="gpu:0")


def with_gpu(node: Node) -> Node:
    device = Accelerator(index=0, vendor="nvidia", name="GB10")
    node.inventory = msgspec.to_builtins(msgspec.structs.replace(HARDWARE, accelerators=[device]))
    node.save()
    return node
