"""The newest readings as Prometheus text. An absent value is no sample, and says why beside it."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import lru_cache

from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from monitoring.alerts.fleet import simulated_nodes
from monitoring.export.names import (
    ALIASES,
    PREFIX,
    RENAMED,
    SUCCESS,
    exported_name,
    help_of,
    histogram_of,
    label_of,
)
from monitoring.metrics import METRICS
from monitoring.packing import Field
from monitoring.scopes import Subject, launch_of, subjects
from monitoring.storage.series import Latest, latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FRESH = timedelta(seconds=15)
"""An older reading is no statement about now and is not exported."""
INF = "le=+Inf"

Labels = tuple[tuple[str, str], ...]


def render(*others: Collector, aliases: bool = False) -> bytes:
    """The readings, and what `others` have to say. `aliases`: under vLLM's names too."""
    registry = CollectorRegistry()
    for collector in others:
        registry.register(collector)
    return _Page(aliases).text().encode() + generate_latest(registry)


class _Family:
    """All samples of one name, in the order in which they came."""

    def __init__(self, name: str, kind: str, text: str) -> None:
        self.name = name
        self.kind = kind
        self.text = text
        self.lines: list[str] = []

    def add(self, labels: str, value: float, suffix: str = "") -> None:
        self.lines.append(f"{self.name}{suffix}{{{labels}}} {value!r}\n")

    def write(self) -> str:
        head = f"# HELP {self.name} {self.text}\n# TYPE {self.name} {self.kind}\n"
        return head + "".join(self.lines)


class _Page:
    def __init__(self, aliases: bool) -> None:
        self._aliases = aliases
        self._families: dict[str, _Family] = {}
        self._ages = self._named(
            f"{PREFIX}telemetry_age_seconds", "gauge", "How old the newest reading of a node is."
        )
        self._missing = self._named(
            f"{PREFIX}metric_available",
            "gauge",
            "0 for each value that could not be read, with the reason.",
        )

    def text(self) -> str:
        now = timezone.now()
        everything = subjects("everything")
        readings = latest(everything, FRESH)
        made_up = simulated_nodes()
        for subject in everything:
            if (reading := readings.get(subject.topic)) is None:
                continue
            self._read(subject, reading, subject.node in made_up)
            if subject.subject == "node":
                age = max(0.0, (now - reading.at).total_seconds())
                self._ages.add(_text((("node", subject.node_name),)), age)
        return "".join(family.write() for family in self._families.values() if family.lines)

    def _read(self, subject: Subject, reading: Latest, made_up: bool) -> None:
        place = _text([*_place(subject), *([("simulated", "true")] if made_up else [])])
        alias = _alias_labels(subject) if self._aliases else ""
        histograms: dict[str, _Histogram] = {}
        for field, number in zip(reading.fields, reading.numbers, strict=True):
            metric = field[0]
            if number is None:
                self._miss(place, field)
            elif (base := histogram_of(metric)) != metric:
                histograms.setdefault(base, _Histogram(base)).take(field, number)
            else:
                self._add(metric, place, field, number)
                if alias and metric in ALIASES:
                    self._add_alias(metric, alias, field[6], number)
        for histogram in histograms.values():
            self._add_histogram(histogram, place, alias)

    def _miss(self, place: str, field: Field) -> None:
        self._missing.add(_joined(place, _why(field)), 0.0)

    def _add(self, metric: str, place: str, field: Field, number: float) -> None:
        renamed = RENAMED.get(metric)
        value = number * renamed.scale if renamed else number
        family = self._named(exported_name(metric), _type(metric), help_of(metric))
        family.add(_joined(place, _how(field)), value)

    def _add_alias(self, metric: str, alias: str, label: str, number: float) -> None:
        labels = alias
        if metric == "requests_finished_total":
            if label not in SUCCESS:
                return
            labels = f'{alias},finished_reason="{label}"'
        for name in ALIASES[metric]:
            self._named(name, _type(metric), help_of(metric)).add(labels, number)

    def _add_histogram(self, histogram: "_Histogram", place: str, alias: str) -> None:
        if not histogram.whole:
            return
        bar = f"{histogram.base}_bucket"
        own = self._named(exported_name(bar), "histogram", help_of(bar))
        histogram.write(own, _joined(place, histogram.how))
        for name in ALIASES.get(bar, ()) if alias else ():
            histogram.write(self._named(name, "histogram", help_of(bar)), alias)

    def _named(self, name: str, kind: str, text: str) -> _Family:
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = _Family(name, kind, text)
        return family


class _Histogram:
    """The bars and the sum of one subject."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.how = ""
        self._bars: dict[str, float] = {}
        self._sum: float | None = None

    @property
    def whole(self) -> bool:
        return INF in self._bars and self._sum is not None

    def take(self, field: Field, number: float) -> None:
        self.how = _source(field)
        if field[0].endswith("_sum"):
            self._sum = number
        else:
            self._bars[field[6]] = number

    def write(self, family: _Family, labels: str) -> None:
        comma = "," if labels else ""
        for label, count in self._bars.items():
            bound = label.removeprefix("le=")
            told = bound if bound == "+Inf" else repr(float(bound))
            family.add(f'{labels}{comma}le="{told}"', count, "_bucket")
        family.add(labels, self._sum or 0.0, "_sum")
        family.add(labels, self._bars[INF], "_count")


def _type(metric: str) -> str:
    if metric in METRICS:
        return "gauge" if METRICS[metric].shape == "gauge" else "counter"
    return "counter" if metric.endswith("_total") else "gauge"


def _place(subject: Subject) -> Labels:
    """Where it was read, of all that is known."""
    launch = launch_of(subject.subject)
    device = subject.subject.partition(":")[2] if subject.role == "gpu" else ""
    parts: Mapping[str, str] = {
        "node": subject.node_name,
        "device": device,
        "deployment": subject.deployment,
        "launch": launch or "",
        "rank": subject.rank,
    }
    return tuple((name, value) for name, value in parts.items() if value)


@lru_cache(maxsize=8192)
def _how(field: Field) -> str:
    """How it was read, and what tells it from others of its metric. Fields are few and come again
    and again."""
    own = _text([(label_of(field[0]), field[6])]) if field[6] else ""
    return _joined(_source(field), own)


def _source(field: Field) -> str:
    return _text((("scope", field[4]), ("source", field[2]), ("kind", field[3])))


@lru_cache(maxsize=8192)
def _why(field: Field) -> str:
    """What is absent, and the reason."""
    metric, _unit, source, _kind, scope, reason, label = field
    told = [("metric", metric), ("scope", scope), ("source", source), ("label", label)]
    return _text([*(pair for pair in told if pair[1]), ("reason", reason)])


def _joined(one: str, other: str) -> str:
    return f"{one},{other}" if one and other else one or other


def _alias_labels(subject: Subject) -> str:
    """As vLLM labels its own; empty where the subject is no engine."""
    if subject.role != "engine":
        return ""
    launch = launch_of(subject.subject) or ""
    return _text((("model_name", subject.deployment), ("engine", launch)))


def _text(labels: Iterable[tuple[str, str]]) -> str:
    return ",".join(_pairs(labels))


def _pairs(labels: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in labels:
        yield f'{name}="{_escaped(value)}"'


@lru_cache(maxsize=4096)
def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
