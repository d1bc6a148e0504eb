"""Reproducible noise: a pure function of (seed, position), so a replay draws the same token.

SplitMix64 (Steele, Lea, Flood 2014).
"""

import numpy as np
from numpy.typing import NDArray

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1)."""
    return (_mix(_state(seed, position)) >> 11) * 2.0**-53


def exponentials(seed: int, position: int, tokens: NDArray[np.intp]) -> NDArray[np.float64]:
    """A number of the standard exponential distribution for each token id, never 0.

    Each is keyed by its id as well, whatever other ids are asked for.
    """
    z = (tokens.astype(np.uint64) + np.uint64(2)) * np.uint64(_GOLDEN)
    z += np.uint64(_mix(_state(seed, position)))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    z = (z ^ (z >> np.uint64(31))) >> np.uint64(11)
    return -np.log((z.astype(np.float64) + 0.5) * 2.0**-53)


def _state(seed: int, position: int) -> int:
    return _mix(seed & _MASK) + position


def _mix(state: int) -> int:
    z = (state + _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)
