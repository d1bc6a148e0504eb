"""What is stored, as series: the past at the level that fits, growth of counters, and now."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from monitoring.packing import Field
from monitoring.samples import series_key
from monitoring.scopes import Subject

LevelName = Literal["second", "minute", "hour"]


@dataclass
class Series:
    """One metric of one subject, in columns of equal length.

    A row of None stands wherever nothing was read for longer than 2.5 intervals, so that a line
    breaks there. `low` and `high` are a bucket's extremes; at the level of seconds, unthinned, they
    are the value itself. What the series is (kind, source, reason) is told as of its end.
    """

    topic: str
    metric: str
    scope: str
    label: str
    unit: str
    kind: str
    source: str
    reason: str
    at: list[float] = field(default_factory=list)
    """Unix seconds, the beginning of each bucket."""
    value: list[float | None] = field(default_factory=list)
    """The reading, or the mean of a bucket."""
    low: list[float | None] = field(default_factory=list)
    high: list[float | None] = field(default_factory=list)

    @property
    def key(self) -> str:
        return series_key(self.metric, self.scope, self.label)


@dataclass(frozen=True)
class History:
    level: LevelName
    step_seconds: float
    """The distance of two rows."""
    series: list[Series]


@dataclass(frozen=True)
class Gain:
    """What a counter grew by in one bucket. A source that started over counts from nothing; what
    it grew by during a gap of more than three intervals is not counted, and not in `covered`."""

    topic: str
    metric: str
    scope: str
    label: str
    kind: str
    at: float
    amount: float
    covered: float
    """Seconds of the bucket for which there are readings."""


@dataclass(frozen=True)
class Latest:
    """The newest reading of a subject."""

    topic: str
    at: datetime
    fields: Sequence[Field]
    numbers: Sequence[float | None]


def history(
    subjects: Sequence[Subject],
    metrics: Collection[str],
    since: datetime,
    until: datetime,
    points: int = 600,
) -> History:
    """At most about `points` rows a series, at the finest level that is kept for that time.

    Whatever the level, no minimum and no maximum is lost.
    """
    raise NotImplementedError


def gains(
    subjects: Sequence[Subject],
    metrics: Collection[str],
    since: datetime,
    until: datetime,
    step: timedelta,
) -> list[Gain]:
    """By series and bucket of `step` (whole minutes, or hours for more than some days)."""
    raise NotImplementedError


def latest(subjects: Sequence[Subject], within: timedelta) -> dict[str, Latest]:
    """Topic -> its newest reading, of those not older than `within`."""
    raise NotImplementedError
