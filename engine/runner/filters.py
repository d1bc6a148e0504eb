"""Which tokens may be drawn, and the draw: arithmetic on one row, the same in every batch.

A row of weights holds exp((logit - largest) / temperature), so that the likeliest token weighs 1.
Ties go to the lower token id. Rows are NumPy's, whose partial sorts are many times faster.
"""

import numpy as np
from numpy.typing import NDArray

from engine.protocol.steps import Sampling

Floats = NDArray[np.floating]
Ids = NDArray[np.intp]

_FIRST_CANDIDATES = 256
"""How many of the largest weights are sorted before more are needed for top-p."""
_BLOCK = 256
"""Weights summed together before a draw looks at each."""


def draw(weights: Floats, sampling: Sampling, noise: float) -> int:
    """The token at `noise`, in [0, 1), of the distribution that the settings leave over."""
    if sampling.min_p <= 0 and sampling.top_k <= 0 and sampling.top_p >= 1:
        return _pick_in_blocks(weights, noise)
    kept = keep(weights, sampling)
    return int(kept[pick(weights[kept], noise)])


def keep(weights: Floats, sampling: Sampling) -> Ids:
    """Ids left over by min_p, then top_k, then top_p; at least one."""
    kept = np.flatnonzero(weights >= min(sampling.min_p, 1.0))
    if 0 < sampling.top_k < len(kept):
        kept = kept[ranked(weights[kept], sampling.top_k)]
    if sampling.top_p < 1:
        kept = kept[top_p(weights[kept], sampling.top_p)]
    return kept


def ranked(values: Floats, count: int) -> Ids:
    """Places of the `count` largest values, best first, equal ones in order."""
    if count >= len(values):
        return np.argsort(-values, kind="stable")
    edge = np.partition(values, len(values) - count)[len(values) - count]
    places = np.flatnonzero(values >= edge)
    return places[np.argsort(-values[places], kind="stable")[:count]]


def top_p(weights: Floats, p: float) -> Ids:
    """Places of the fewest largest weights that hold at least `p` of the total; at least one."""
    needed = p * float(weights.sum(dtype=np.float64))
    count = _FIRST_CANDIDATES
    while True:
        places = ranked(weights, count)
        reached = weights[places].cumsum(dtype=np.float64)
        if reached[-1] >= needed or count >= len(weights):
            return places[: int(np.searchsorted(reached, needed)) + 1]
        count *= 8


def pick(weights: Floats, noise: float) -> int:
    """The place where the cumulative weight passes `noise` times the total; it has weight."""
    return _pick(weights.cumsum(dtype=np.float64), noise)


def _pick(cumulative: NDArray[np.float64], noise: float) -> int:
    place = int(np.searchsorted(cumulative, noise * cumulative[-1], side="right"))
    # Rounding may lift the target to the total, which the last token with weight reaches.
    return min(place, int(np.searchsorted(cumulative, cumulative[-1])))


def _pick_in_blocks(weights: Floats, noise: float) -> int:
    """Like `pick`, without a running sum over the whole row."""
    sums = np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK))
    cumulative = sums.cumsum(dtype=np.float64)
    block = _pick(cumulative, noise)
    before = cumulative[block - 1] if block else 0.0
    inside = (noise * cumulative[-1] - before) / (cumulative[block] - before)
    start = block * _BLOCK
    return start + pick(weights[start : start + _BLOCK], float(inside))
