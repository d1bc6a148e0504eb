"""Several sources, one value: the best of each series, and what several plugs feed together."""

from collections.abc import Iterable, Sequence

from monitoring.metrics import ENERGY, NOISE, NOISE_BAND, POWER, Metric
from monitoring.samples import Kind, Sample, measured, unavailable
from monitoring.sources import PduSource

RANKS: dict[Kind, int] = {
    "measured": 0,
    "calibrated": 1,
    "derived": 2,
    "estimated": 3,
    "declared": 4,
    "unavailable": 5,
}

Key = tuple[str, str, str, str]


def best_of_each(samples: Iterable[Sample]) -> list[Sample]:
    """One sample a series: what is measured before what is guessed, the earlier of two equals.

    A band stays with the level that it belongs to.
    """
    chosen: dict[Key, Sample] = {}
    bands: dict[tuple[str, Key], Sample] = {}
    for sample in samples:
        key = sample.subject, sample.metric, sample.scope, sample.label
        if sample.metric == NOISE_BAND.name:
            level = sample.subject, NOISE.name, sample.scope, sample.label
            bands.setdefault((sample.source, level), sample)
            continue
        held = chosen.get(key)
        if held is None or RANKS[sample.kind] < RANKS[held.kind]:
            chosen[key] = sample
    kept = [band for (source, level), band in bands.items() if chosen[level].source == source]
    return [*chosen.values(), *kept]


def plugs_together(pdus: Sequence[PduSource], samples: Sequence[Sample]) -> list[Sample]:
    """A box on two PDUs draws their sum; each by itself keeps its name as the label."""
    if len(pdus) < 2:
        return list(samples)
    origins = {pdu.origin: pdu.name for pdu in pdus}
    single = [s for s in samples if s.source in origins and s.metric in (POWER.name, ENERGY.name)]
    others = [s for s in samples if s not in single]
    named = [_labelled(sample, origins[sample.source]) for sample in single]
    return [*others, _sum(POWER, single, pdus), _sum(ENERGY, single, pdus), *named]


def _sum(metric: Metric, samples: Sequence[Sample], pdus: Sequence[PduSource]) -> Sample:
    """Absent when one of them is: the rest would pass for all."""
    origin = "pdu: " + " + ".join(pdu.name for pdu in pdus)
    parts = [sample for sample in samples if sample.metric == metric.name]
    missing = next((sample for sample in parts if sample.value is None), None)
    if missing is not None:
        return unavailable(metric, missing.reason, source=origin, scope="wall")
    estimated = any(sample.kind == "estimated" for sample in parts)
    return measured(
        metric,
        sum(sample.value or 0.0 for sample in parts),
        source=origin,
        scope="wall",
        kind="estimated" if estimated else "measured",
    )


def _labelled(sample: Sample, label: str) -> Sample:
    return Sample(
        sample.metric,
        sample.value,
        sample.unit,
        sample.source,
        sample.kind,
        sample.scope,
        sample.subject,
        sample.reason,
        label,
    )
