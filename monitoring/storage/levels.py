"""The levels at which the past is kept, and which of them answers a question."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from monitoring import wishes

LevelName = Literal["second", "minute", "hour"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Level:
    name: LevelName
    table: str
    seconds: int
    most_rows: int
    """Of one subject; what would take more is read from the next level."""

    @property
    def step(self) -> timedelta:
        return timedelta(seconds=self.seconds)

    @property
    def keep(self) -> timedelta:
        return wishes.current().keep(self.name)

    def floor(self, moment: datetime) -> datetime:
        return floor(moment, self.step)


SECOND = Level("second", "monitoring_reading", 1, 7_200)
MINUTE = Level("minute", "monitoring_minute", 60, 10_080)
HOUR = Level("hour", "monitoring_hour", 3600, 1_000_000)
LEVELS = (SECOND, MINUTE, HOUR)

MOST_SCANNED = 400_000
"""Rows of all subjects together that are read at the level of seconds."""


def floor(moment: datetime, step: timedelta) -> datetime:
    """The beginning of the bucket it lies in; buckets are counted from the epoch."""
    return moment - (moment - EPOCH) % step


def choose(
    since: datetime, until: datetime, now: datetime, points: int, subjects: int, finest: Level
) -> Level:
    """The finest level that is kept for this time and worth its reading for so many points."""
    span = (until - since).total_seconds()
    for level, coarser in zip(LEVELS, (MINUTE, HOUR), strict=False):
        rows = span / level.seconds
        if (
            level.seconds >= finest.seconds
            and since >= now - level.keep
            and rows <= level.most_rows
            and (level is not SECOND or rows * subjects <= MOST_SCANNED)
            and span < points * coarser.seconds
        ):
            return level
    return HOUR


def width(level: Level, since: datetime, until: datetime, points: int) -> int:
    """Seconds of a row, a whole number of the level's own, so that about `points` are enough."""
    rows = (until - since).total_seconds() / level.seconds
    return level.seconds * max(1, -(-int(rows + 0.999) // max(1, points)))
