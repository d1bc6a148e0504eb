"""What quiet hours did: readings while they held beside those of the same weekdays. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from zoneinfo import ZoneInfo

from monitoring.samples import gettext_noop as _

LEAST = 30
"""Minutes on either side; fewer say nothing."""
NEVER_HELD = _("Nothing was held back in this time.")
TOO_FEW = _("Not enough answers yet: it takes 30 minutes of generation on either side.")
TOO_FEW_READINGS = _("Not enough readings yet: it takes 30 minutes on either side.")

Points = Sequence[tuple[float, float]]
"""Unix seconds and a minute's value, in order; minutes without one are not there."""
Spans = Sequence[tuple[float, float]]
Fold = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class Effect:
    """`during` and `outside` are None together, and then `reason` says why."""

    during: float | None
    outside: float | None
    minutes_during: int
    minutes_outside: int
    reason: str = ""

    @property
    def change(self) -> float | None:
        if self.during is None or self.outside is None:
            return None
        return self.during - self.outside

    @property
    def ratio(self) -> float | None:
        """How much of it is lost or won, as a share of what it is otherwise."""
        return self.change / self.outside if self.change is not None and self.outside else None


def effect(
    points: Points, spans: Spans, zone: ZoneInfo, *, fold: Fold = median, few: str = TOO_FEW
) -> Effect:
    """Weekdays on which nothing was ever held back are left out: weekends are not like Mondays."""
    if not spans:
        return Effect(None, None, 0, 0, NEVER_HELD)
    ordered = sorted(spans)
    begins = [since for since, _until in ordered]

    def held(at: float) -> bool:
        index = bisect_right(begins, at) - 1
        return index >= 0 and at < ordered[index][1]

    inside = [(at, value) for at, value in points if held(at)]
    days = {_weekday(at, zone) for at, _value in inside}
    during = [value for _at, value in inside]
    outside = [v for at, v in points if not held(at) and _weekday(at, zone) in days]
    if min(len(during), len(outside)) < LEAST:
        return Effect(None, None, len(during), len(outside), few)
    return Effect(fold(during), fold(outside), len(during), len(outside))


def pooled(groups: Iterable[Points]) -> Points:
    """Readings of several in one row, each minute of each counting once."""
    return sorted(point for group in groups for point in group)


def _weekday(at: float, zone: ZoneInfo) -> int:
    return datetime.fromtimestamp(at, zone).weekday()
