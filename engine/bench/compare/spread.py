"""Medians with their spread, and ratios pair by pair. Pure."""

from collections.abc import Sequence
from statistics import median, quantiles
from typing import Literal

import msgspec

Better = Literal["more", "less"]


class Spread(msgspec.Struct, frozen=True):
    """Half of the values lie between `low` and `high`."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread | None":
        """None of nothing."""
        if not values:
            return None
        if len(values) == 1:
            return cls(values[0], values[0], values[0], 1)
        low, _middle, high = quantiles(values, n=4, method="inclusive")
        return cls(median(values), low, high, len(values))


def ratios(
    ours: Sequence[float | None], theirs: Sequence[float | None], better: Better
) -> list[float]:
    """Of each round in which both have a value: above 1 where ours is the better one."""
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=False) if a and b]
    return [a / b if better == "more" else b / a for a, b in pairs]


def best(medians: dict[str, float], better: Better) -> str | None:
    """Whose is the best; None of nobody."""
    if not medians:
        return None
    choose = max if better == "more" else min
    return choose(medians, key=lambda name: medians[name])
