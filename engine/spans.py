"""Contiguous parts of a whole. Pure arithmetic: no torch, no I/O."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Half-open range `start <= i < stop`."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start

    def times(self, factor: int) -> "Span":
        """The span of items `factor` times finer, e.g. heads to their rows."""
        return Span(self.start * factor, self.stop * factor)

    def after(self, offset: int) -> "Span":
        """The same span of something that begins `offset` items later."""
        return Span(self.start + offset, self.stop + offset)

    def __contains__(self, item: int) -> bool:
        return self.start <= item < self.stop


def split_evenly(total: int, parts: int) -> list[Span]:
    """`parts` contiguous spans over `total` items; the first `total % parts` are one longer."""
    return split_by_weight(total, [1] * parts)


def split_by_weight(total: int, weights: Sequence[int]) -> list[Span]:
    """One contiguous span for each weight, as near to its share of `total` as whole items allow.

    Where there are enough items, nobody is left without one. Equal shares differ by one at most,
    and the first are the longer ones.
    """
    edges = accumulate(_sizes(total, weights), initial=0)
    return [Span(start, stop) for start, stop in pairwise(edges)]


def _sizes(total: int, weights: Sequence[int]) -> list[int]:
    """By largest remainder (Hamilton); whose share is less than one item takes one beforehand."""
    small: set[int] = set()
    while True:
        rest = total - len(small)
        others = [part for part in range(len(weights)) if part not in small]
        whole = sum(weights[part] for part in others)
        short = {part for part in others if rest * weights[part] < whole}
        if not short or total < len(weights):
            break
        small |= short
    sizes = [1] * len(weights)
    for part in others:
        sizes[part] = rest * weights[part] // whole
    by_remainder = sorted(others, key=lambda part: -(rest * weights[part] % whole))
    for part in by_remainder[: total - sum(sizes)]:
        sizes[part] += 1
    return sizes
