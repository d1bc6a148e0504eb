"""Sound levels: A-weighting, energetic means and sums, the fan law. Pure.

Levels are never added or averaged as numbers: their energies are. A-weighting is the curve of
IEC 61672-1, scaled to 0 dB at 1 kHz.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CORNERS = (20.598997, 107.65265, 737.86223, 12194.217)
"""Hertz: the poles of the A-weighting curve."""
LEAST_DISTANCE = 3.0
"""A total that is closer to its background than this is mostly background."""


def _curve(hertz: Any) -> Any:
    """Gain of the curve before it is scaled; for a number or an array."""
    low, second, third, high = (corner**2 for corner in CORNERS)
    square = hertz**2
    return (
        high
        * square**2
        / ((square + low) * ((square + second) * (square + third)) ** 0.5 * (square + high))
    )


def a_weighting_db(hertz: float) -> float:
    """What the ear loses at a frequency above 0, in decibels."""
    return float(20 * math.log10(_curve(hertz) / _curve(1000.0)))


def level_dbfs(block: "NDArray[np.float64]", rate: int) -> float:
    """A-weighted level of a block of sound in decibels, 0 for an RMS of 1; -inf for silence."""
    import numpy as np

    window, gains, scale = _spectrum(len(block), rate)
    power = float(np.sum((np.abs(np.fft.rfft(block * window)) * gains) ** 2)) * scale
    return 10 * math.log10(power) if power > 0 else -math.inf


@lru_cache(maxsize=4)
def _spectrum(length: int, rate: int) -> "tuple[NDArray[np.float64], NDArray[np.float64], float]":
    """Window, gain of each bin, and what turns the spectrum's sum into a mean square."""
    import numpy as np

    window = np.hanning(length)
    gains = _curve(np.fft.rfftfreq(length, 1 / rate)) / _curve(1000.0)
    return window, gains, 2 / (length * float(np.sum(window**2)))


def energetic_sum(levels: Sequence[float]) -> float:
    """Sources that are heard together. Never of two microphones in one room: they hear the same."""
    return 10 * math.log10(math.fsum(10 ** (level / 10) for level in levels))


def energetic_mean(levels: Sequence[float]) -> float:
    """The steady level with the energy of these, each heard for as long as the others (LAeq)."""
    return energetic_sum(levels) - 10 * math.log10(len(levels))


def without_background(total: float, background: float) -> float | None:
    """What is heard besides the background; None when that cannot be told."""
    if total - background < LEAST_DISTANCE:
        return None
    return 10 * math.log10(10 ** (total / 10) - 10 ** (background / 10))


def effective_rpm(speeds: Sequence[float], exponent: float = 50.0) -> float:
    """The one speed at which equal fans would be as loud as at these speeds."""
    power = exponent / 10
    mean = math.fsum(speed**power for speed in speeds) / len(speeds)
    return math.pow(mean, 1 / power)


def fan_law(level: float, reference_rpm: float, rpm: float, exponent: float = 50.0) -> float:
    """The level at `rpm` of fans that gave `level` at `reference_rpm`; both above 0."""
    return level + exponent * math.log10(rpm / reference_rpm)
