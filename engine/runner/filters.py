"""Which tokens may be drawn, and the draw: arithmetic on one row, the same in every batch.

A row of weights holds exp((logit - largest) / temperature), so that the likeliest token weighs 1.
Ties go to the lower token id. Rows are NumPy's, whose partial sorts are many times faster.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from engine.protocol.steps import Sampling

Floats = NDArray[np.floating]
Ids = NDArray[np.intp]

_NOTABLE = 1e-4
"""Lighter tokens are sorted only when the heavier ones do not suffice for top-p."""
_BLOCK = 256
"""Weights summed together before a draw looks at each."""


def draw(weights: Floats, sampling: Sampling, noise: float) -> int:
    """The token at `noise`, in [0, 1), of the distribution that the settings leave over."""
    kept = keep(weights, sampling)
    if kept is None:
        return _pick_in_blocks(weights, noise)
    return int(kept[_pick(weights[kept].cumsum(dtype=np.float64), noise)])


def keep(weights: Floats, sampling: Sampling) -> Ids | None:
    """Ids left over by min_p, then top_k, then top_p: at least one. None for all of them."""
    kept: Ids | None = None
    for find in _filters(sampling):
        left = find(weights if kept is None else weights[kept])
        kept = left if kept is None else kept[left]
    return kept


def _filters(sampling: Sampling) -> Iterator[Callable[[Floats], Ids]]:
    if sampling.min_p > 0:
        yield lambda weights: np.flatnonzero(weights >= min(sampling.min_p, 1.0))
    if sampling.top_k > 0:
        yield lambda weights: largest(weights, sampling.top_k)
    if sampling.top_p < 1:
        yield lambda weights: top_p(weights, sampling.top_p)


def largest(values: Floats, count: int) -> Ids:
    """Places of the `count` largest values, in order of place."""
    if count >= len(values):
        return np.arange(len(values))
    edge = np.partition(values, len(values) - count)[len(values) - count]
    return _from_edge(values, edge, count)


def top_p(weights: Floats, p: float) -> Ids:
    """Places of the fewest largest weights that hold at least `p` of the total; at least one."""
    needed = p * weights.sum()
    candidates = weights[weights >= _NOTABLE]
    if candidates.sum() < needed or not len(candidates):
        candidates = weights
    falling = np.sort(candidates)[::-1]
    reached = falling.cumsum(dtype=np.float64)
    count = min(int(np.searchsorted(reached, needed)) + 1, len(falling))
    return _from_edge(weights, falling[count - 1], count)


def _from_edge(values: Floats, edge: np.floating, count: int) -> Ids:
    """Places of the `count` largest: all above `edge`, then those equal to it in order."""
    places = np.flatnonzero(values >= edge)
    surplus = len(places) - count
    if surplus <= 0:
        return places
    equal = np.flatnonzero(values[places] == edge)
    return np.delete(places, equal[len(equal) - surplus :])


def _pick(cumulative: NDArray[np.float64], noise: float) -> int:
    """The place where the cumulative weight passes `noise` times the total; it has weight."""
    place = int(np.searchsorted(cumulative, noise * cumulative[-1], side="right"))
    # Rounding may lift the target to the total, which the last token with weight reaches.
    return min(place, int(np.searchsorted(cumulative, cumulative[-1])))


def _pick_in_blocks(weights: Floats, noise: float) -> int:
    """Without a running sum over the whole row."""
    sums = np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK))
    cumulative = sums.cumsum(dtype=np.float64)
    block = _pick(cumulative, noise)
    before = cumulative[block - 1] if block else 0.0
    inside = (noise * cumulative[-1] - before) / (cumulative[block] - before)
    start = block * _BLOCK
    return start + _pick(weights[start : start + _BLOCK].cumsum(dtype=np.float64), float(inside))
