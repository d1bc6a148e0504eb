"""Several sources of one value: the best is told, and a band goes with its level."""

from hypothesis import given, settings
from hypothesis import strategies as st

from monitoring.metrics import METRICS, NOISE, NOISE_BAND, POWER
from monitoring.probes.choice import RANKS, best_of_each
from monitoring.samples import Kind, Sample

KINDS: tuple[Kind, ...] = tuple(RANKS)


@st.composite
def samples(draw: st.DrawFn) -> list[Sample]:
    """Of some sources; each tells a level always with its band."""
    told = []
    for source in draw(st.lists(st.sampled_from("abcd"), max_size=6)):
        label = draw(st.sampled_from(["1 m", "desk"]))
        for metric in draw(st.sampled_from([(NOISE, NOISE_BAND), (POWER,)])):
            kind = draw(st.sampled_from(KINDS))
            value = None if kind == "unavailable" else 1.0
            told.append(
                Sample(
                    metric.name,
                    value,
                    metric.unit,
                    source,
                    kind,
                    "room",
                    reason="" if value else "No.",
                    label=label,
                )
            )
    return told


def key(sample: Sample) -> tuple[str, str, str]:
    return sample.metric, sample.scope, sample.label


@settings(max_examples=50)
@given(samples())
def test_each_series_is_told_once_by_its_best_source(told: list[Sample]) -> None:
    best = best_of_each(told)
    assert len({key(sample) for sample in best}) == len(best)
    assert {key(sample) for sample in best} == {key(sample) for sample in told}
    for sample in best:
        assert sample in told
        assert sample.metric in METRICS
        if sample.metric != NOISE_BAND.name:
            rivals = [RANKS[other.kind] for other in told if key(other) == key(sample)]
            assert RANKS[sample.kind] == min(rivals)


@settings(max_examples=50)
@given(samples())
def test_a_band_is_of_the_source_that_tells_the_level(told: list[Sample]) -> None:
    levels = {s.label: s.source for s in best_of_each(told) if s.metric == NOISE.name}
    bands = {s.label: s.source for s in best_of_each(told) if s.metric == NOISE_BAND.name}
    assert levels == bands
