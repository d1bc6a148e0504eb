"""Parts cover the whole, in proportion to their weights, and leave nobody without."""

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.spans import Span, split_by_weight, split_evenly

WEIGHTS = st.lists(st.integers(1, 1000), min_size=1, max_size=64)


def covers(spans: list[Span], total: int) -> bool:
    """Whether they are `total` items, each once and in order."""
    edges = [span.start for span in spans] + [total]
    return edges[0] == 0 and [span.stop for span in spans] == edges[1:]


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_an_even_split_covers_everything_and_differs_by_at_most_one(total: int, parts: int) -> None:
    spans = split_evenly(total, parts)
    assert len(spans) == parts
    assert covers(spans, total)
    sizes = [span.size for span in spans]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


@given(st.integers(0, 10_000), WEIGHTS)
def test_a_weighted_split_covers_everything(total: int, weights: list[int]) -> None:
    assert covers(split_by_weight(total, weights), total)


@given(st.integers(0, 10_000), WEIGHTS)
def test_nobody_is_left_without_where_there_is_enough(total: int, weights: list[int]) -> None:
    spans = split_by_weight(total + len(weights), weights)
    assert all(span.size for span in spans)


@given(st.integers(0, 10_000), WEIGHTS)
def test_who_weighs_more_gets_no_less(total: int, weights: list[int]) -> None:
    spans = split_by_weight(total, weights)
    pairs = sorted(zip(weights, (span.size for span in spans), strict=True), key=lambda p: p[0])
    for (lighter, less), (heavier, more) in pairwise(pairs):
        assert less <= more or lighter == heavier


@given(st.integers(0, 10_000), WEIGHTS)
def test_parts_are_shares_rounded(total: int, weights: list[int]) -> None:
    shares = [Fraction(total * weight, sum(weights)) for weight in weights]
    if min(shares) < 1:
        return
    for span, share in zip(split_by_weight(total, weights), shares, strict=True):
        assert abs(span.size - share) < 1


def test_a_small_weight_takes_one_item_from_the_large_ones() -> None:
    sizes = [span.size for span in split_by_weight(10, [1000, 1, 1, 1000])]
    assert sizes == [4, 1, 1, 4]
