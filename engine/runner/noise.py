"""Reproducible noise: a pure function of (seed, position), so a replay draws the same token."""

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) from two rounds of SplitMix64 (Steele, Lea, Flood 2014)."""
    return (_mix(_mix(seed & _MASK) + position) >> 11) * 2.0**-53


def _mix(state: int) -> int:
    z = (state + _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
