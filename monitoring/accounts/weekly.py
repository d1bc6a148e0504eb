"""Hours of the week as people say them: days, from, to, by the clock on the wall. Pure."""

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

EVERY_DAY = frozenset(range(7))
DAY = timedelta(days=1)
AHEAD = timedelta(days=9)
"""Whatever repeats by the week has changed by then, if it ever does."""


class Weekly(msgspec.Struct, frozen=True):
    """From `begins` to `ends` on these days.

    A span that passes midnight belongs to the day on which it begins. In the hour that a change to
    winter time repeats it holds twice; one that summer time leaps over does not occur.
    """

    days: frozenset[int] = EVERY_DAY
    """0 is Monday."""
    begins: time = time(0)
    ends: time = time(0)
    """Not after `begins`: on the next day. The same time: a whole day later."""

    def holds(self, local: datetime) -> bool:
        """`local` is in the zone whose clock is meant."""
        now, today = local.time(), local.weekday()
        if self.begins < self.ends:
            return today in self.days and self.begins <= now < self.ends
        if now >= self.begins:
            return today in self.days
        return now < self.ends and (today - 1) % 7 in self.days

    @property
    def length(self) -> timedelta:
        """By a clock that is not set."""
        start = datetime.combine(date(2000, 1, 1), self.begins)
        end = datetime.combine(date(2000, 1, 1), self.ends)
        return end - start if start < end else end + DAY - start


def edges(
    spans: Collection[Weekly], zone: ZoneInfo, begin: datetime, end: datetime
) -> list[datetime]:
    """Every instant between `begin` and `end` at which one of `spans`, or a date, may begin or end.

    Between two neighbours nothing changes. Some are none after all; that does no harm.
    """
    times = {time(0)} | {at for span in spans for at in (span.begins, span.ends)}
    found = set(_clock_changes(zone, begin, end))
    day, last = begin.astimezone(zone).date() - DAY, end.astimezone(zone).date() + DAY
    while day <= last:
        for at in times:
            for fold in (0, 1):  # What the clock shows twice is meant both times.
                found.add(datetime.combine(day, at, zone).replace(fold=fold).astimezone(UTC))
        day += DAY
    return sorted(at for at in found if begin < at < end)


def next_change(
    state: Callable[[datetime], Any],
    spans: Collection[Weekly],
    zone: ZoneInfo,
    after: datetime,
) -> datetime | None:
    """When `state` is first another than at `after`; None when it stays so."""
    now = state(after)
    ahead = edges(spans, zone, after, after + AHEAD)
    return next((at for at in ahead if state(at) != now), None)


def _clock_changes(zone: ZoneInfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    """The instants at which the zone's distance from UTC changes, to the second."""
    at = begin.astimezone(UTC).replace(microsecond=0)
    while at < end:
        following = at + DAY
        if _offset(at, zone) != _offset(following, zone):
            low, high = at, following
            while high - low > timedelta(seconds=1):
                middle = (low + (high - low) / 2).replace(microsecond=0)
                if _offset(middle, zone) == _offset(low, zone):
                    low = middle
                else:
                    high = middle
            yield high
        at = following


def _offset(at: datetime, zone: ZoneInfo) -> timedelta | None:
    return at.astimezone(zone).utcoffset()
