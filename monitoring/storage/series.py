"""What is stored, as series: the past at the level that fits, growth of counters, and now."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from monitoring.packing import Field
from monitoring.samples import series_key
from monitoring.scopes import Subject, topic_of
from monitoring.storage import growth, levels
from monitoring.storage.levels import HOUR, MINUTE, SECOND, LevelName
from monitoring.storage.lines import lines, stretches
from monitoring.storage.tracks import layouts, tracks

__all__ = ["Gain", "History", "Latest", "LevelName", "Series", "gains", "history", "latest"]

LATEST = """
SELECT l.id, r.at, r.numbers
FROM unnest(%s::bigint[]) AS l (id) CROSS JOIN LATERAL (
    SELECT at, numbers FROM monitoring_reading
    WHERE layout_id = l.id AND at >= %s ORDER BY at DESC LIMIT 1
) AS r
ORDER BY r.at
"""


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

    Whatever the level, no minimum and no maximum is lost. What is not rolled up yet is read from
    the finer level; what sums up the fleet is known by the minute.
    """
    now = timezone.now()
    until = min(until, now + MINUTE.step)
    grouped = any(subject.role == "group" for subject in subjects)
    finest = MINUTE if grouped else SECOND
    level = levels.choose(since, until, now, points, len(subjects), finest)
    width = levels.width(level, since, until, points)
    found = tracks(subjects, metrics, since)
    series = []
    for topic, described, columns in lines(found, stretches(level, since, until, now), width):
        metric, unit, source, kind, scope, reason, label = described
        series.append(Series(topic, metric, scope, label, unit, kind, source, reason, *columns))
    return History(level.name, float(width), series)


def gains(
    subjects: Sequence[Subject],
    metrics: Collection[str],
    since: datetime,
    until: datetime,
    step: timedelta,
) -> list[Gain]:
    """By series and bucket of `step` (whole minutes, or hours for more than some days).

    Whole minutes count: from the one that `since` lies in to the last that begins before `until`.
    Buckets begin at multiples of `step` since the epoch. In order of time.
    """
    now = timezone.now()
    level = HOUR if step >= HOUR.step and since < now - MINUTE.keep else MINUTE
    found = tracks(subjects, metrics, since)
    grown = growth.by_bucket(found, stretches(level, since, min(until, now), now), step)
    return [
        Gain(topic, *place.series, place.field[3], at, amount, covered)
        for (topic, at, place), (amount, covered) in grown
    ]


def latest(subjects: Sequence[Subject], within: timedelta) -> dict[str, Latest]:
    """Topic -> its newest reading, of those not older than `within`."""
    since = timezone.now() - within
    described = {layout.pk: layout for layout in layouts(subjects, since)}
    with connection.cursor() as cursor:
        cursor.execute(LATEST, [list(described), since])
        rows = cursor.fetchall()
    parts: dict[tuple[str, int | None], Latest] = {}
    for pk, at, numbers in rows:
        layout = described[pk]
        topic = topic_of(layout.node_id, layout.subject)
        fields = [tuple(described) for described in layout.fields]
        parts[topic, layout.node_id] = Latest(topic, at, fields, numbers)
    newest: dict[str, Latest] = {}
    for (topic, _node), part in parts.items():
        newest[topic] = _joined(newest.get(topic), part)
    return newest


def _joined(known: Latest | None, part: Latest) -> Latest:
    """A rank's process is read on its own box, its steps by the head of its replica."""
    if known is None:
        return part
    return Latest(
        part.topic,
        max(known.at, part.at),
        [*known.fields, *part.fields],
        [*known.numbers, *part.numbers],
    )
