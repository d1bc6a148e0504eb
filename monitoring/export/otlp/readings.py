"""The newest readings as OpenTelemetry's data, and their way to the collector."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from monitoring.alerts.fleet import simulated_nodes
from monitoring.export.names import help_of, histogram_of, label_of
from monitoring.export.otlp.names import CONVENTIONS, Known, own_name, unit_of
from monitoring.export.otlp.resource import resource
from monitoring.metrics import METRICS
from monitoring.packing import Field
from monitoring.scopes import Subject, launch_of, subjects
from monitoring.storage.series import Latest, latest

FRESH = timedelta(seconds=15)
INFINITE = "+Inf"
UNKNOWN: Any = None
"""The SDK's types ask for numbers; its encoder leaves out what is None."""

MOST_COUNTED = 2**63 - 1
"""What the protocol can carry."""

Attributes = dict[str, str]
Key = tuple[str, tuple[tuple[str, str], ...]]


class Pusher:
    """Remembers since when each counter grows, as cumulative sums must say."""

    def __init__(self) -> None:
        self._resource = resource()
        self._since: dict[Key, tuple[int, float]] = {}

    def push(self) -> bool:
        """Send what is new; whether the collector took it. An absent value is not sent."""
        data = self.collect()
        return data is None or _exporter().export(data) == MetricExportResult.SUCCESS

    def collect(self) -> MetricsData | None:
        """None when there is nothing to say."""
        everything = subjects("everything")
        readings = latest(everything, FRESH)
        page, made_up = _Page(self._since), simulated_nodes()
        for subject in everything:
            if (reading := readings.get(subject.topic)) is not None:
                page.read(subject, reading, subject.node in made_up)
        metrics = page.metrics()
        if not metrics:
            return None
        scope = ScopeMetrics(InstrumentationScope("tandem"), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])


@cache
def _exporter() -> OTLPMetricExporter:
    """Reads its endpoint, headers and timeout from the standard variables."""
    return OTLPMetricExporter()


@cache
def pusher() -> Pusher:
    return Pusher()


class _Page:
    def __init__(self, since: dict[Key, tuple[int, float]]) -> None:
        self._since = since
        self._numbers: dict[str, list[NumberDataPoint]] = {}
        self._bars: dict[str, list[HistogramDataPoint]] = {}

    def read(self, subject: Subject, reading: Latest, made_up: bool) -> None:
        at = int(reading.at.timestamp() * 1e9)
        place = _place(subject) | ({"tandem.simulated": "true"} if made_up else {})
        histograms: dict[str, dict[str, float]] = {}
        for field, number in zip(reading.fields, reading.numbers, strict=True):
            metric, label = field[0], field[6]
            if number is None:
                continue
            base = histogram_of(metric)
            if base != metric:
                part = label.removeprefix("le=") if metric.endswith("_bucket") else "sum"
                histograms.setdefault(base, {})[part] = number
                continue
            self._add(metric, {**place, **_how(field)}, number, at)
        for base, parts in histograms.items():
            self._add_bars(base, place, parts, at)

    def metrics(self) -> list[Metric]:
        return [metric for name in self._numbers for metric in self._shaped(name)] + [
            metric for base in self._bars for metric in self._histograms(base)
        ]

    def _add(self, metric: str, attributes: Attributes, number: float, at: int) -> None:
        start = 0 if _is_gauge(metric) else self._start(metric, attributes, number, at)
        point = NumberDataPoint(attributes, start, at, number)
        self._numbers.setdefault(metric, []).append(point)

    def _add_bars(self, base: str, place: Attributes, parts: dict[str, float], at: int) -> None:
        if INFINITE not in parts or "sum" not in parts:
            return
        total = parts.pop("sum")
        bounds, counts = zip(*sorted((float(label), n) for label, n in parts.items()), strict=True)
        rising = [int(count) for count in accumulate(counts, max)]
        if rising[-1] > MOST_COUNTED:
            return
        point = HistogramDataPoint(
            attributes=place,
            start_time_unix_nano=self._start(base, place, rising[-1], at),
            time_unix_nano=at,
            count=rising[-1],
            sum=total,
            bucket_counts=[after - before for before, after in pairwise([0, *rising])],
            explicit_bounds=list(bounds[:-1]),
            min=UNKNOWN,
            max=UNKNOWN,
        )
        self._bars.setdefault(base, []).append(point)

    def _start(self, metric: str, attributes: Attributes, number: float, at: int) -> int:
        """Since when it grows, as far as this process has seen; anew when it began anew."""
        key = metric, tuple(sorted(attributes.items()))
        since, before = self._since.get(key, (at, number))
        if number < before:
            since = at
        self._since[key] = since, number
        return since

    def _shaped(self, metric: str) -> Iterator[Metric]:
        points = self._numbers[metric]
        yield self._metric(own_name(metric), metric, points)
        if known := CONVENTIONS.get(metric):
            yield self._metric(known.name, metric, list(_numbers_with(known, points)))

    def _metric(self, name: str, metric: str, points: list[NumberDataPoint]) -> Metric:
        data: Gauge | Sum = (
            Gauge(points)
            if _is_gauge(metric)
            else Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        )
        return Metric(name, help_of(metric), unit_of(metric), data)

    def _histograms(self, base: str) -> Iterator[Metric]:
        bar, points = f"{base}_bucket", self._bars[base]
        yield self._bar_metric(own_name(base), bar, points)
        if known := CONVENTIONS.get(bar):
            yield self._bar_metric(known.name, bar, list(_bars_with(known, points)))

    def _bar_metric(self, name: str, bar: str, points: list[HistogramDataPoint]) -> Metric:
        data = Histogram(points, AggregationTemporality.CUMULATIVE)
        return Metric(name, help_of(bar), "s", data)


def _numbers_with(known: Known, points: Iterable[NumberDataPoint]) -> Iterator[NumberDataPoint]:
    for p in points:
        said = {**(p.attributes or {}), **dict(known.attributes)}
        yield NumberDataPoint(said, p.start_time_unix_nano, p.time_unix_nano, p.value)


def _bars_with(known: Known, points: Iterable[HistogramDataPoint]) -> Iterator[HistogramDataPoint]:
    for p in points:
        said = {**(p.attributes or {}), **dict(known.attributes)}
        yield HistogramDataPoint(
            said,
            p.start_time_unix_nano,
            p.time_unix_nano,
            p.count,
            p.sum,
            p.bucket_counts,
            p.explicit_bounds,
            p.min,
            p.max,
        )


def _is_gauge(metric: str) -> bool:
    return metric not in METRICS or METRICS[metric].shape == "gauge"


def _place(subject: Subject) -> Attributes:
    device = subject.subject.partition(":")[2] if subject.role == "gpu" else ""
    parts = {
        "host.name": subject.node_name,
        "hw.id": device,
        "gen_ai.request.model": subject.deployment,
        "tandem.launch": launch_of(subject.subject) or "",
        "tandem.rank": subject.rank,
    }
    return {name: value for name, value in parts.items() if value}


def _how(field: Field) -> Attributes:
    metric, _unit, source, kind, scope, _reason, label = field
    said = {"tandem.scope": scope, "tandem.source": source, "tandem.kind": kind}
    return said | ({f"tandem.{label_of(metric)}": label} if label else {})
