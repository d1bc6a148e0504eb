"""Processor power from the kernel's RAPL energy counters."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from monitoring.metrics import POWER, Metric
from monitoring.samples import Sample, Scope, gettext_noop, measured, unavailable


class RaplProbe:
    """Watts of all processor packages since the previous reading.

    The counters are microjoules that wrap at `max_energy_range_uj`. Reads neither the memory's
    share nor the rest of the machine: `scope` is `cpu`.
    """

    name = "cpu: RAPL"
    scope: Scope = "cpu"
    metrics: Sequence[Metric] = (POWER,)

    def __init__(
        self,
        root: Path = Path("/sys/class/powercap"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._clock = clock
        self._last: tuple[float, dict[Path, int]] | None = None

    def read(self) -> list[Sample]:
        packages = self._packages()
        if not packages:
            return [
                self._absent(gettext_noop("This machine's kernel offers no RAPL energy counters."))
            ]
        try:
            counters = {package: _number(package / "energy_uj") for package in packages}
        except PermissionError:
            return [
                self._absent(
                    gettext_noop("The energy counters may only be read by root on this machine.")
                )
            ]
        now, last = self._clock(), self._last
        self._last = now, counters
        if last is None or last[1].keys() != counters.keys() or now <= last[0]:
            return [
                self._absent(gettext_noop("Power needs a second reading of the energy counters."))
            ]
        joules = sum(
            _used(package, last[1][package], now_uj) for package, now_uj in counters.items()
        )
        watts = joules / (now - last[0])
        return [measured(POWER, watts, source=self.name, scope=self.scope)]

    def _packages(self) -> list[Path]:
        """`intel-rapl:0`, `intel-rapl:1`; a package's parts (`intel-rapl:0:1`) are inside it."""
        zones = sorted(self._root.glob("intel-rapl:*"))
        return [zone for zone in zones if zone.name.count(":") == 1 and _is_package(zone)]

    def _absent(self, reason: str) -> Sample:
        return unavailable(POWER, reason, source=self.name, scope=self.scope)


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
