"""How busy a made-up box is at any moment: a pure function of its seed and the time."""

import math
from dataclasses import dataclass
from random import Random

DAY_SECONDS = 86_400.0
BURSTS = 6
"""Sines of a box's own that people's use is made of."""


@dataclass(frozen=True)
class Load:
    """People come in the morning and leave in the evening; in between they come in waves."""

    base: float
    swing: float
    peak_hour: float
    waves: tuple[tuple[float, float, float], ...]
    """Period in seconds, share, phase."""

    @classmethod
    def of(cls, seed: int) -> "Load":
        random = Random(seed)
        periods = [random.uniform(7.0, 20.0), random.uniform(30.0, 90.0), random.uniform(150, 400)]
        periods += [random.uniform(600.0, 2400.0) for _ in range(BURSTS - len(periods))]
        return cls(
            base=random.uniform(0.08, 0.25),
            swing=random.uniform(0.35, 0.65),
            peak_hour=random.gauss(14.5, 1.0),
            waves=tuple(
                (period, random.uniform(0.02, 0.12), random.uniform(0, math.tau))
                for period in periods
            ),
        )

    def at(self, moment: float) -> float:
        """0 is idle, 1 all that the box can do. `moment` in Unix seconds, read as UTC."""
        hour = moment % DAY_SECONDS / 3600.0
        people = 0.5 + 0.5 * math.cos((hour - self.peak_hour) / 24.0 * math.tau)
        waves = sum(
            share * math.sin(moment / period * math.tau + phase)
            for period, share, phase in self.waves
        )
        return min(1.0, max(0.0, self.base + self.swing * people**2 + waves))
