"""Which tokens may be drawn, and the draw: arithmetic on one row, the same in every batch.

A row of weights holds exp((logit - largest) / temperature), so that the likeliest token weighs 1.
Ties go to the lower token id. Rows are NumPy's, whose partial sorts are many times faster.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from engine.protocol.steps import Sampling
from engine.runner.noise import exponentials, uniform

Floats = NDArray[np.floating]
Ids = NDArray[np.intp]

_NOTABLE = 1e-4
"""Lighter tokens are sorted only when the heavier ones do not suffice for top-p."""
_BLOCK = 256
"""Ids that are drawn together, before one of them."""


def draw(weights: Floats, sampling: Sampling, seed: int, position: int) -> int:
    """The token that (seed, position) draw from the distribution that the settings leave over.

    First a block of ids, by its share of the total; then, inside it, the token that comes first in
    a race in which each runs at the speed of its weight. A row whose logits differ in their last
    bits, as they do in another batch, has nearly the same sums and the same winner; the running sum
    over every id alone would move from one token of a flat tail to the next.
    """
    kept = keep(weights, sampling)
    block = _pick(_block_sums(weights, kept), uniform(seed, position))
    start, stop = block * _BLOCK, min((block + 1) * _BLOCK, len(weights))
    tokens = np.arange(start, stop)
    if kept is not None:
        first, last = np.searchsorted(kept, (start, stop))
        tokens = kept[first:last]
    return int(tokens[_race(weights[tokens], exponentials(seed, position, tokens))])


def _block_sums(weights: Floats, kept: Ids | None) -> Floats:
    if kept is None:
        return np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK))
    return np.bincount(kept // _BLOCK, weights[kept]).astype(np.float64)


def _race(weights: Floats, noise: NDArray[np.float64]) -> int:
    """The place of the first to arrive; what weighs nothing never does."""
    times = np.full(len(weights), np.inf)
    np.divide(noise, weights, out=times, where=weights > 0)
    return int(times.argmin())


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


def _pick(sums: Floats, noise: float) -> int:
    """The place where the running sum passes `noise` times the total; it has weight."""
    reached = sums.cumsum(dtype=np.float64)
    place = int(np.searchsorted(reached, noise * reached[-1], side="right"))
    # Rounding may lift the target to the total, which the last block with weight reaches.
    return min(place, int(np.searchsorted(reached, reached[-1])))
