"""How much memory each process of a fleet holds, over time."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, median
from typing import NamedTuple

from tests.chaos.fleet import Fleet
from tests.chaos.processes import command

MEGABYTE = 1 << 20
WINDOW_SECONDS = 20.0
SHARE, EXTRA = 0.05, 10.0
"""Growth under 5 % and 10 MB is none."""
_NAMES = {
    "engine.rank": "rank",
    "engine.head": "head",
    "engine.agent": "agent",
    "uvicorn": "web",
    "beat": "beat",
    "worker": "worker",
    "up": "up",
}


class Sample(NamedTuple):
    at: float
    rss: float
    pss: float


@dataclass
class Curve:
    """One process, or the changing ones of Postgres together; megabytes."""

    samples: list[Sample] = field(default_factory=list)

    def near(self, moment: float, which: str) -> float:
        """The median around `moment`, or of what is nearest to it."""
        near = [it for it in self.samples if abs(it.at - moment) <= WINDOW_SECONDS / 2]
        near = near or [min(self.samples, key=lambda it: abs(it.at - moment))]
        return float(median(getattr(it, which) for it in near))

    def slope(self, since: float, which: str) -> float:
        """Megabytes a minute."""
        late = [it for it in self.samples if it.at >= since]
        if len(late) < 2:
            return 0.0
        values = [getattr(it, which) for it in late]
        return 60 * linear_regression([it.at for it in late], values).slope


class Memory:
    """`look` now and then; `table` in the end."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._curves: dict[str, Curve] = defaultdict(Curve)
        self._begun = time.monotonic()

    def look(self) -> None:
        at = time.monotonic() - self._begun
        now: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        for box in self._fleet.office.boxes:
            for pid in box.pids():
                _add(now, f"{box.name[-1]} {name_of(pid)}", pid)
        for pid in self._fleet.panel.processes():
            _add(now, name_of(pid), pid)
        for name, (rss, pss) in now.items():
            self._curves[name].samples.append(Sample(at, rss, pss))

    def table(self, since: float, until: float) -> list[dict[str, object]]:
        """One row a process that lived from `since` to `until`, seconds from the start."""
        lived = {
            name: curve
            for name, curve in sorted(self._curves.items())
            if curve.samples[0].at <= since and curve.samples[-1].at >= until - WINDOW_SECONDS
        }
        return [_row(name, curve, since, until) for name, curve in lived.items()]

    @property
    def names(self) -> set[str]:
        return set(self._curves)


def name_of(pid: int) -> str:
    """Such as `rank 4711`; Postgres's processes come and go and count as one."""
    words = command(pid)
    if not words:
        return "gone"
    if "postgres" in Path(words[0].rstrip(":")).name:
        return "Postgres"
    if "valkey" in words[0]:
        return f"Valkey {pid}"
    named = next((short for long, short in _NAMES.items() if long in words), "")
    return f"{named or Path(words[-1]).name} {pid}"


def _add(now: dict[str, tuple[float, float]], name: str, pid: int) -> None:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return
    values = {line.split(":")[0]: line.split()[1] for line in text.splitlines()[1:]}
    rss, pss = now[name]
    now[name] = (rss + int(values["Rss"]) / 1024, pss + int(values["Pss"]) / 1024)


def _row(name: str, curve: Curve, since: float, until: float) -> dict[str, object]:
    row: dict[str, object] = {"process": name}
    flat = True
    for which in ("rss", "pss"):
        then, now = curve.near(since, which), curve.near(until, which)
        row[which] = {
            "then_mb": round(then, 1),
            "end_mb": round(now, 1),
            "mb_a_minute": round(curve.slope(since, which), 2),
        }
        flat = flat and now - then < SHARE * then + EXTRA
    return row | {"flat": flat}
