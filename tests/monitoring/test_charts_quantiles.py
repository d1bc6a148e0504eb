"""A percentile comes from the bars of a histogram and is never surer than they are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.charts.histograms import bound, quantile


def bars(counts: dict[float, float]) -> list[tuple[float, float]]:
    return list(counts.items())


def test_the_values_of_a_bar_are_taken_to_lie_evenly_in_it() -> None:
    found = quantile(bars({0.1: 0, 0.2: 10, math.inf: 10}), 0.5)
    assert found is not None
    assert found.value == pytest.approx(0.15)
    assert (found.low, found.high) == (0.1, 0.2)


def test_a_hand_computed_case() -> None:
    # 20 below 0.05 s, 60 up to 0.1 s, 20 up to 0.5 s: the 95th of 100 is 15 of 20 into the last.
    found = quantile(bars({0.05: 20, 0.1: 80, 0.5: 100, math.inf: 100}), 0.95)
    assert found is not None
    assert found.value == pytest.approx(0.1 + 0.4 * 15 / 20)


def test_above_the_last_bound_it_is_only_known_to_be_more() -> None:
    found = quantile(bars({30.0: 1, 60.0: 2, math.inf: 10}), 0.95)
    assert found is not None
    assert (found.value, found.high, found.beyond) == (60.0, None, True)


def test_nothing_counted_has_no_percentile() -> None:
    assert quantile([], 0.5) is None
    assert quantile(bars({0.1: 0, math.inf: 0}), 0.5) is None


@pytest.mark.parametrize(
    ("label", "expected"),
    [("le=0.25", 0.25), ("le=+Inf", math.inf), ("le=", None), ("fan1", None), ("le=nan", None)],
)
def test_a_bar_says_its_bound_in_its_label(label: str, expected: float | None) -> None:
    assert bound(label) == expected


@given(
    st.lists(st.floats(0.001, 100.0), min_size=1, max_size=200),
    st.floats(0.01, 0.99),
)
def test_the_true_percentile_lies_between_the_bounds(values: list[float], share: float) -> None:
    edges = [0.01, 0.1, 1.0, 10.0]
    counted = [(edge, float(sum(value <= edge for value in values))) for edge in edges]
    found = quantile([*counted, (math.inf, float(len(values)))], share)
    assert found is not None
    true = sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)]
    assert found.low <= true
    assert found.high is None or true <= found.high
    assert found.low <= found.value <= (math.inf if found.high is None else found.high)


@given(
    st.lists(st.tuples(st.floats(0.001, 50.0), st.floats(0.0, 1e6)), max_size=20),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
)
def test_a_greater_share_is_never_a_smaller_value(
    counted: list[tuple[float, float]], one: float, other: float
) -> None:
    less, more = quantile(counted, min(one, other)), quantile(counted, max(one, other))
    assert (less is None) == (more is None)
    if less is not None and more is not None:
        assert less.value <= more.value + 1e-9
