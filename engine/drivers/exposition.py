"""The Prometheus text of another engine's server, read by its driver's table. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from engine.drivers.base import Named, NoAnswer
from engine.errors import gettext_noop as _


class Found(msgspec.Struct, frozen=True):
    """One value, under our name."""

    metric: str
    label: str
    value: float


def read_exposition(text: str, names: Mapping[str, Named]) -> list[Found]:
    """What of it has a name here; the first name that is there counts where two mean the same.

    Raises NoAnswer when the text is none of Prometheus.
    """
    try:
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    except ValueError as error:
        raise NoAnswer(_("The engine's /metrics cannot be read.")) from error
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    found: dict[tuple[str, str], Found] = {}
    for name, named in names.items():
        values = list(_values(name, named, by_name))
        known = {metric for metric, _label in found}
        if values and values[0].metric not in known:
            found |= {(value.metric, value.label): value for value in values}
    return list(found.values())


def _values(name: str, named: Named, by_name: Mapping[str, list[Sample]]) -> Iterator[Found]:
    if not named.histogram:
        yield from _folded(named, named.metric, by_name.get(name, ()), named.label)
        return
    for found in _folded(named, f"{named.metric}_bucket", by_name.get(f"{name}_bucket", ()), "le"):
        yield Found(found.metric, f"le={_bound(found.label)}", found.value)
    yield from _folded(named, f"{named.metric}_sum", by_name.get(f"{name}_sum", ()), "")


def _folded(named: Named, metric: str, samples: Iterable[Sample], label: str) -> Iterator[Found]:
    """One value for each value of `label`."""
    groups: dict[str, list[float]] = {}
    for sample in samples:
        if math.isfinite(sample.value):
            own = sample.labels.get(label, "") if label else named.fixed
            groups.setdefault(own, []).append(sample.value * named.scale)
    for own, values in groups.items():
        yield Found(metric, own, max(values) if named.fold == "max" else sum(values))


def _bound(text: str) -> str:
    """As our own bars are labelled: `0.5`, `1`, `+Inf`."""
    bound = float(text)
    return "+Inf" if math.isinf(bound) else f"{bound:g}"
