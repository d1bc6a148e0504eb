"""Which heads each rank of a stage holds. Pure arithmetic: no torch, no I/O."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from operator import itemgetter

from engine.model_config import ModelConfig
from engine.spans import Span, split_by_weight

HeadSpans = tuple[Span, Span]
"""KV heads, and the query heads that read them."""


def split_heads(model: ModelConfig, weights: Sequence[int]) -> list[HeadSpans]:
    """For each rank, in proportion to its weight.

    KV heads go whole, with all of their query heads. Where there are fewer of them than ranks, some
    ranks hold the same one, and share its query heads. The latent counts as one KV head that every
    rank holds.
    """
    if model.latent is not None:
        return [(Span(0, 1), heads) for heads in split_by_weight(model.num_heads, weights)]
    size = model.kv_group_size
    if len(weights) <= model.num_kv_heads:
        spans = split_by_weight(model.num_kv_heads, weights)
        return [(span, span.times(size)) for span in spans]
    shared: list[HeadSpans] = []
    for head, count in enumerate(_ranks_of_each(tuple(weights), model.num_kv_heads, size)):
        own = weights[len(shared) : len(shared) + count]
        parts = split_by_weight(size, own)
        shared += [(Span(head, head + 1), part.after(head * size)) for part in parts]
    return shared


@cache
def _ranks_of_each(weights: tuple[int, ...], kv_heads: int, size: int) -> tuple[int, ...]:
    """How many ranks, neighbours all, share each KV head and its `size` query heads.

    Of all ways the one with the least sum of squares: the closest to every rank's share.
    """

    @cache
    def best(first: int, heads: int) -> tuple[Fraction, tuple[int, ...]]:
        """Of the ranks from `first` on, for the last `heads` heads."""
        if not heads:
            return Fraction(0), ()
        left = len(weights) - first
        most, least = min(size, left - heads + 1), max(1, left - size * (heads - 1))
        ways = []
        for count in range(most, least - 1, -1):
            cost, counts = best(first + count, heads - 1)
            own = weights[first : first + count]
            ways.append((cost + _strain(size, own), (count, *counts)))
        return min(ways, key=itemgetter(0))

    return best(0, kv_heads)[1]


def _strain(size: int, weights: Sequence[int]) -> Fraction:
    parts = split_by_weight(size, weights)
    pairs = zip(parts, weights, strict=True)
    return sum((Fraction(part.size**2, weight) for part, weight in pairs), Fraction(0))
