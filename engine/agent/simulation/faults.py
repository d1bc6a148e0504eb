"""What goes wrong with made-up boxes: seeded, so that the same fleet has the same bad luck."""

from dataclasses import dataclass
from random import Random
from typing import Literal

FaultKind = Literal[
    "silent", "thermal", "stuck-low", "device-lost", "fan-stopped", "link-degraded", "clock-off"
]
KINDS: tuple[FaultKind, ...] = (
    "silent",
    "thermal",
    "stuck-low",
    "device-lost",
    "fan-stopped",
    "link-degraded",
    "clock-off",
)
HOUR = 3600.0


@dataclass(frozen=True)
class SimulatedFault:
    kind: FaultKind
    begins: float
    """Unix seconds, as is the next."""
    ends: float
    device: int


class Luck:
    """A box's faults, hour by hour: each hour is drawn anew from seed and hour alone."""

    def __init__(self, seed: int, devices: int, faults_per_day: float) -> None:
        self._seed = seed
        self._devices = devices
        self._chance = min(1.0, faults_per_day / 24.0)
        self._hour = -1
        self._drawn: tuple[SimulatedFault, ...] = ()

    def now(self, moment: float) -> tuple[SimulatedFault, ...]:
        hour = int(moment // HOUR)
        if hour != self._hour:
            self._hour, self._drawn = hour, tuple(self._draw(hour))
        return tuple(fault for fault in self._drawn if fault.begins <= moment < fault.ends)

    def _draw(self, hour: int) -> list[SimulatedFault]:
        random = Random(f"{self._seed}/{hour}")
        if random.random() >= self._chance:
            return []
        begins = hour * HOUR + random.uniform(60.0, 3000.0)
        return [
            SimulatedFault(
                kind=random.choice(KINDS),
                begins=begins,
                ends=begins + random.uniform(45.0, 500.0),
                device=random.randrange(max(1, self._devices)),
            )
        ]
