"""Medians, quartiles and ratios mean what they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bench.compare.spread import Spread, best, ratios

VALUES = st.floats(min_value=1e-3, max_value=1e6)


@given(st.lists(VALUES, min_size=1, max_size=30))
def test_the_median_lies_between_the_quartiles_of_real_values(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread is not None
    slack = 1e-9 * max(values)
    assert min(values) - slack <= spread.low <= spread.median + slack
    assert spread.median <= spread.high + slack <= max(values) + 2 * slack
    assert spread.count == len(values)


def test_of_nothing_there_is_no_spread() -> None:
    assert Spread.of([]) is None


@given(st.lists(st.tuples(VALUES, VALUES), max_size=20))
def test_a_ratio_above_one_is_always_better(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = [a for a, _b in pairs], [b for _a, b in pairs]
    more, less = ratios(ours, theirs, "more"), ratios(ours, theirs, "less")
    assert [value >= 1 for value in more] == [a >= b for a, b in pairs]
    assert [a * b for a, b in zip(more, less, strict=True)] == pytest.approx([1.0] * len(pairs))


def test_only_rounds_that_both_have_are_compared() -> None:
    assert ratios([2.0, None, 6.0], [1.0, 5.0, None], "more") == [2.0]


def test_the_best_is_the_most_or_the_least() -> None:
    medians = {"a": 1.0, "b": 2.0}
    assert (best(medians, "more"), best(medians, "less"), best({}, "more")) == ("b", "a", None)
