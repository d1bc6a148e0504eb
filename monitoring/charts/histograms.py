"""Quantiles of histograms: what stands between two bars is only known to lie between them. Pure."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

INFINITE = "+Inf"


@dataclass(frozen=True)
class Quantile:
    """`value` is a guess between the bounds, as if a bar's values lay evenly in it.

    `high` is None where the quantile lies above the last bar that has a bound: then `value` is that
    bound, and all that is known is that it was more.
    """

    value: float
    low: float
    high: float | None

    @property
    def beyond(self) -> bool:
        return self.high is None


def bound(label: str) -> float | None:
    """Of a bar labelled `le=0.5`; None for a label that is none."""
    name, _, number = label.partition("=")
    if name != "le" or not number:
        return None
    try:
        found = float(number)
    except ValueError:
        return None
    return None if math.isnan(found) else found


def quantile(bars: Iterable[tuple[float, float]], share: float) -> Quantile | None:
    """The value below which `share` of all lie; None where nothing was counted.

    `bars`: upper bounds with cumulative counts, in any order. Counts that were read at slightly
    different moments may fall a little; they are taken as not falling.
    """
    bounds, counts = _rising(bars)
    if not counts or counts[-1] <= 0:
        return None
    rank = share * counts[-1]
    place = min(bisect_left(counts, rank), len(counts) - 1)
    while counts[place] <= 0:  # `share` 0: the first bar that holds anything.
        place += 1
    below = counts[place - 1] if place else 0.0
    low = bounds[place - 1] if place else min(0.0, bounds[place])
    if math.isinf(bounds[place]):
        return Quantile(low, low, None)
    inside = (rank - below) / (counts[place] - below)
    value = low + (bounds[place] - low) * min(1.0, max(0.0, inside))
    return Quantile(value, low, bounds[place])


def _rising(bars: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    bounds: list[float] = []
    counts: list[float] = []
    for upper, count in sorted(bars):
        if bounds and upper == bounds[-1]:
            counts[-1] = max(counts[-1], count)
            continue
        bounds.append(upper)
        counts.append(max(count, counts[-1] if counts else 0.0))
    return bounds, counts
