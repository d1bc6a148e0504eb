"""The newest readings as Prometheus text. An absent value is no sample, and says why beside it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from monitoring.models import Reading
from monitoring.scopes import Subject, subjects, topic_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FRESH = timedelta(seconds=15)
"""An older reading is no statement about now and is not exported."""
PLACE = ("node", "deployment", "rank")
LABELS = (*PLACE, "scope", "source", "kind")

Family = GaugeMetricFamily | CounterMetricFamily


@dataclass(frozen=True)
class _Value:
    metric: str
    value: float | None
    unit: str
    labels: tuple[str, ...]
    reason: str


def render(*others: Collector) -> bytes:
    """The readings, and what `others` have to say."""
    registry = CollectorRegistry()
    for collector in (_Latest(), *others):
        registry.register(collector)
    return generate_latest(registry)


class _Latest(Collector):
    def collect(self) -> Iterable[Family]:
        now = timezone.now()
        readings = _latest(now)
        ages = GaugeMetricFamily(
            "tandem_telemetry_age_seconds",
            "How old the newest reading of a node is.",
            labels=["node"],
        )
        values: list[_Value] = []
        for subject in subjects("everything"):
            reading = readings.get(subject.topic)
            if reading is None:
                continue
            values.extend(_values(subject, reading))
            if subject.node is not None:
                ages.add_metric([subject.node_name], max(0.0, (now - reading.at).total_seconds()))
        yield ages
        yield _availability(values)
        yield from _families(values)


def _latest(now: datetime) -> dict[str, Reading]:
    """Topic -> its newest reading, of those that are fresh."""
    fresh = Reading.objects.filter(at__gte=now - FRESH).select_related("layout").order_by("at")
    return {topic_of(r.layout.node_id, r.layout.subject): r for r in fresh}


def _values(subject: Subject, reading: Reading) -> Iterator[_Value]:
    place = (subject.node_name, subject.deployment, subject.rank)
    for described, number in zip(reading.layout.fields, reading.numbers, strict=True):
        metric, unit, source, kind, scope, reason, _label = described
        yield _Value(metric, number, unit, (*place, scope, source, kind), reason)


def _availability(values: Iterable[_Value]) -> Family:
    family = GaugeMetricFamily(
        "tandem_metric_available",
        "0 where a metric could not be read, with the reason.",
        labels=["metric", "reason", *PLACE],
    )
    for value in values:
        family.add_metric(
            [value.metric, value.reason, *value.labels[: len(PLACE)]],
            0.0 if value.value is None else 1.0,
        )
    return family


def _families(values: Iterable[_Value]) -> Iterable[Family]:
    families: dict[str, Family] = {}
    for value in values:
        if value.value is not None:
            family = families.setdefault(value.metric, _family(value))
            family.add_metric(value.labels, value.value)
    return families.values()


def _family(value: _Value) -> Family:
    make = CounterMetricFamily if value.metric.endswith("_total") else GaugeMetricFamily
    return make(f"tandem_{value.metric}", f"In {value.unit}.", labels=LABELS)
