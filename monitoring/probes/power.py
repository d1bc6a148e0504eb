"""Processor power and energy from the kernel's RAPL counters."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from monitoring.metrics import ENERGY, POWER, Metric
from monitoring.samples import Sample, Scope, gettext_noop, measured, unavailable

NO_COUNTERS = gettext_noop("This machine's kernel offers no RAPL energy counters.")
ROOT_ONLY = gettext_noop("The energy counters may only be read by root on this machine.")
SECOND = gettext_noop("Power needs a second reading of the energy counters.")
MOST_SECONDS = 60.0
"""Between two readings; in more, a counter may have wrapped more than once."""


class RaplProbe:
    """Watts of all processor packages since the previous reading, and their joules since the first.

    The counters are microjoules that wrap at `max_energy_range_uj`, each package's at its own.
    Reads neither the memory's share nor the rest of the machine: `scope` is `cpu`.
    """

    name = "cpu: RAPL"
    scope: Scope = "cpu"
    metrics: Sequence[Metric] = (POWER, ENERGY)

    def __init__(
        self,
        root: Path = Path("/sys/class/powercap"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._clock = clock
        self._last: tuple[float, dict[Path, int]] | None = None
        self._joules = 0.0

    def read(self) -> list[Sample]:
        packages = self._packages()
        if not packages:
            return self._absent(NO_COUNTERS)
        try:
            counters = {package: _number(package / "energy_uj") for package in packages}
        except PermissionError:
            return self._absent(ROOT_ONLY)
        now, last = self._clock(), self._last
        self._last = now, counters
        watts = self._watts(now, last, counters)
        power = (
            unavailable(POWER, SECOND, source=self.name, scope=self.scope)
            if watts is None
            else measured(POWER, watts, source=self.name, scope=self.scope)
        )
        return [power, measured(ENERGY, self._joules, source=self.name, scope=self.scope)]

    def _watts(
        self, now: float, last: tuple[float, dict[Path, int]] | None, counters: dict[Path, int]
    ) -> float | None:
        if last is None or last[1].keys() != counters.keys():
            return None
        seconds = now - last[0]
        if not 0 < seconds <= MOST_SECONDS:
            return None
        joules = sum(_used(package, last[1][package], after) for package, after in counters.items())
        self._joules += joules
        return joules / seconds

    def _packages(self) -> list[Path]:
        """`intel-rapl:0`, `intel-rapl:1`; a package's parts (`intel-rapl:0:1`) are inside it. The
        same counters may be there a second time, through memory (`intel-rapl-mmio:0`)."""
        zones = sorted(self._root.glob("intel-rapl:*"))
        return [zone for zone in zones if zone.name.count(":") == 1 and _is_package(zone)]

    def _absent(self, reason: str) -> list[Sample]:
        return [
            unavailable(metric, reason, source=self.name, scope=self.scope)
            for metric in self.metrics
        ]


def _is_package(zone: Path) -> bool:
    """`psys` counts the whole platform, packages included: not to be added to them."""
    try:
        return (zone / "name").read_text().strip().startswith("package")
    except FileNotFoundError:
        return False


def _used(package: Path, before: int, after: int) -> float:
    """Joules between two counter readings, at most one wrap apart."""
    if after < before:
        after += _number(package / "max_energy_range_uj")
    return (after - before) / 1e6


def _number(path: Path) -> int:
    return int(path.read_text())
