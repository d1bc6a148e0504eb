"""Seconds into minutes, minutes into hours: whatever is missing or has changed, in short bites.

A bite is one transaction under a lock, so two workers never do the same; it notes how far the level
is with the rows it wrote, so one that is killed is done again. Doing it again changes nothing.
"""

import logging
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from monitoring.models import Due, Progress
from monitoring.storage import fleet_minutes
from monitoring.storage.levels import HOUR, MINUTE, SECOND, Level
from monitoring.storage.planning import steady_plans
from monitoring.storage.summing import HOURS, MINUTES, upsert

log = logging.getLogger(__name__)

AGAIN = 3
"""Minutes before the last one that are always looked at again: a reading may be a little late."""
RUN_SECONDS = 40.0
"""After this a run ends, whatever is left; the next one goes on."""
BITE_SECONDS = 120
"""Longest that one statement may take."""
LOCK = 7_301_188_226
SEEN_SLACK = 600
"""Seconds."""

SEEN = """
UPDATE monitoring_layout l SET seen = m.at
FROM (
    SELECT layout_id, max(at) AS at FROM monitoring_minute
    WHERE at >= %s AND at < %s GROUP BY layout_id
) AS m
WHERE l.id = m.layout_id AND (l.seen IS NULL OR l.seen < m.at - make_interval(secs => %s))
"""


OTHER_ROWS = """
SELECT r.bucket
FROM (
    SELECT bucket, sum(rows) AS rows
    FROM (
        SELECT layout_id, date_bin('1 minute', at, 'epoch') AS bucket, count(*) AS rows
        FROM monitoring_reading WHERE at >= %(since)s AND at < %(until)s
        GROUP BY layout_id, bucket
    ) AS counted JOIN monitoring_layout ON id = layout_id
    GROUP BY bucket
) AS r
LEFT JOIN (
    SELECT at, sum(rows) AS rows
    FROM monitoring_minute JOIN monitoring_layout ON id = layout_id AND node_id IS NOT NULL
    WHERE at >= %(since)s AND at < %(until)s
    GROUP BY at
) AS m ON m.at = r.bucket
WHERE r.rows IS DISTINCT FROM m.rows
"""


@dataclass(frozen=True)
class Roll:
    """How one level is made of the finer one."""

    source: Level
    level: Level
    select: str
    bite: int
    """Buckets at a time."""


ROLLS = (Roll(SECOND, MINUTE, MINUTES, 4), Roll(MINUTE, HOUR, HOURS, 1))


def roll_up(now: datetime | None = None, seconds: float = RUN_SECONDS) -> int:
    """Bring minutes and hours up to date; how many bites that took.

    Returns early when another worker is at it, or after `seconds`.
    """
    moment = now or timezone.now()
    deadline = time.monotonic() + seconds
    bites = 0
    _look_again()
    for roll in ROLLS:
        for since, until in _missing(roll, moment):
            if time.monotonic() > deadline or not _bite(roll, since, until, forward=True):
                return bites
            bites += 1
        for since, until in _late(roll, moment):
            if time.monotonic() > deadline or not _bite(roll, since, until, forward=False):
                return bites
            bites += 1
    return bites


def _look_again() -> None:
    """Note the last minutes as due that have other readings now than when they were done."""
    done = Progress.objects.filter(level=MINUTE.name).values_list("until", flat=True).first()
    if done is None:
        return
    with steady_plans(BITE_SECONDS), connection.cursor() as cursor:
        cursor.execute(OTHER_ROWS, {"since": done - AGAIN * MINUTE.step, "until": done})
        minutes = [minute for (minute,) in cursor.fetchall()]
    Due.objects.bulk_create(Due(level=MINUTE.name, at=minute) for minute in minutes)


def _missing(roll: Roll, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """From the last bucket done to the one that is not over yet, in order."""
    done = Progress.objects.filter(level=roll.level.name).values_list("until", flat=True).first()
    end = roll.level.floor(now)
    if done is None:
        done = _first(roll)
    if done is None:
        return
    oldest = roll.level.floor(now - roll.source.keep) + roll.level.step
    start = max(oldest, done)
    while start < end:
        stop = min(end, start + roll.bite * roll.level.step)
        yield start, stop
        start = stop


def _first(roll: Roll) -> datetime | None:
    """The first bucket there is anything for."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT min(at) FROM {roll.source.table}")
        first: datetime | None = cursor.fetchone()[0]
    return None if first is None else roll.level.floor(first)


def _late(roll: Roll, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Buckets that got something after they were done, in runs of neighbours."""
    due = Due.objects.filter(level=roll.level.name, at__lt=roll.level.floor(now))
    start = stop = None
    for at in due.order_by("at").values_list("at", flat=True).distinct():
        if start is not None and stop is not None and at == stop and stop - start < _most(roll):
            stop = at + roll.level.step
            continue
        if start is not None and stop is not None:
            yield start, stop
        start, stop = at, at + roll.level.step
    if start is not None and stop is not None:
        yield start, stop


def _most(roll: Roll) -> timedelta:
    return roll.bite * roll.level.step


def _bite(roll: Roll, since: datetime, until: datetime, *, forward: bool) -> bool:
    """False when another worker has the lock."""
    with steady_plans(BITE_SECONDS), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            return False
        _forget(roll.level, since, until)
        given = {"since": since, "until": until, "layouts": None}
        cursor.execute(upsert(roll.level.name, roll.select), given)
        if roll.level is MINUTE:
            fleet_minutes.sum_up(since, until)
            cursor.execute(SEEN, [since, until, SEEN_SLACK])
            _note_hours(since, until)
        else:
            fleet_minutes.forget_hours(since, until)
        if forward:
            _progress(roll.level, until)
    return True


def _forget(level: Level, since: datetime, until: datetime) -> None:
    """What is due there is done with this bite: what comes while it runs is noted after it."""
    Due.objects.filter(level=level.name, at__gte=since, at__lt=until).delete()


def _note_hours(since: datetime, until: datetime) -> None:
    """Hours that are done already and got other minutes now."""
    done = Progress.objects.filter(level=HOUR.name).values_list("until", flat=True).first()
    hours: Collection[datetime] = {HOUR.floor(since), HOUR.floor(until - MINUTE.step)}
    if done is not None:
        late = [hour for hour in sorted(hours) if hour < done]
        Due.objects.bulk_create(Due(level=HOUR.name, at=hour) for hour in late)


def _progress(level: Level, until: datetime) -> None:
    row, made = Progress.objects.get_or_create(level=level.name, defaults={"until": until})
    if not made and row.until < until:
        row.until = until
        row.save(update_fields=["until"])
