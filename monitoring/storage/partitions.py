"""Tables by time: parts made ahead, whole parts dropped, and rows that found no part of their own.

Each table has a default part, so that a reading is never refused for want of another. Rows in it
are strays: they are moved as soon as their own part can be made.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import OperationalError, connection, transaction

from monitoring.storage.levels import HOUR, LEVELS, MINUTE, SECOND, Level

log = logging.getLogger(__name__)

AHEAD = 2
"""Periods after the present one whose parts are there already."""
INLINE = "toast_tuple_target = 8160"
"""Rows stay whole as long as they fit a page: an array that lies elsewhere, or is compressed, is
fetched anew for each of its numbers that is asked for."""
LOCK_SECONDS = 3
"""Longest wait for a table that is being read; then it is tried again the next time."""


@dataclass(frozen=True)
class Part:
    """The part of a level's table for one period."""

    level: Level
    start: datetime

    @property
    def end(self) -> datetime:
        return _next(self.level, self.start)

    @property
    def name(self) -> str:
        return f"{self.level.table}_{self.start:%Y%m%d}"


def part_of(level: Level, moment: datetime) -> Part:
    """Seconds by day, minutes by week from Monday, hours by quarter, in UTC."""
    day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if level is SECOND:
        return Part(level, day)
    if level is MINUTE:
        return Part(level, day - timedelta(days=day.weekday()))
    return Part(level, day.replace(month=day.month - (day.month - 1) % 3, day=1))


def ensure(now: datetime) -> list[str]:
    """Make every part that readings from here on need, and may still need; names of new ones.

    Times out on a table that is being read for long: what could not be made is made the next time.
    """
    made = []
    for level in LEVELS:
        there = set(names(level))
        for part in _wanted(level, now):
            if part.name not in there and _patiently(_make, part):
                made.append(part.name)
    return made


def drop(level: Level, before: datetime) -> list[str]:
    """Drop the parts that end before then, and such rows of the default part; names of the gone."""
    gone = []
    for name in names(level):
        start = datetime.strptime(name.rpartition("_")[2], "%Y%m%d").replace(tzinfo=UTC)
        part = Part(level, start)
        if part.end <= before and _patiently(_drop, part):
            gone.append(name)
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {level.table}_default WHERE at < %s", [before])
    return gone


def strays() -> int:
    """Rows that lie in a default part: more than none for longer than an hour is a fault."""
    with connection.cursor() as cursor:
        counts = []
        for level in LEVELS:
            cursor.execute(f"SELECT count(*) FROM {level.table}_default")
            counts.append(int(cursor.fetchone()[0]))
    return sum(counts)


def names(level: Level) -> list[str]:
    """The parts there are, in the order of time, without the default one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = %s::regclass AND c.relname <> %s ORDER BY c.relname",
            [level.table, f"{level.table}_default"],
        )
        return [name for (name,) in cursor.fetchall()]


def _wanted(level: Level, now: datetime) -> Iterator[Part]:
    """From the oldest time of which readings are still taken."""
    part = part_of(level, now - SECOND.keep)
    last = part_of(level, now)
    for _period in range(AHEAD):
        last = Part(level, last.end)
    while part.start <= last.start:
        yield part
        part = Part(level, part.end)


def _next(level: Level, start: datetime) -> datetime:
    if level is HOUR:
        return (start + timedelta(days=100)).replace(day=1)
    return start + timedelta(days=1 if level is SECOND else 7)


def _patiently(change: Callable[[Part], None], part: Part) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_SECONDS}s"])
            change(part)
    except OperationalError as error:
        log.warning("%s is in use and is seen to later: %s", part.name, error)
        return False
    return True


def _make(part: Part) -> None:
    """A table of its own first, filled with its strays, then attached: rows keep coming in."""
    parent = part.level.table
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {part.name} (LIKE {parent} INCLUDING ALL) WITH ({INLINE})")
        cursor.execute(f"LOCK TABLE {parent}_default IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(
            f"WITH moved AS (DELETE FROM {parent}_default WHERE at >= %s AND at < %s RETURNING *) "
            f"INSERT INTO {part.name} SELECT * FROM moved",
            [part.start, part.end],
        )
        if cursor.rowcount:
            log.warning("%d rows moved to %s out of the default part", cursor.rowcount, part.name)
        cursor.execute(
            f"ALTER TABLE {parent} ATTACH PARTITION {part.name} "
            f"FOR VALUES FROM ('{part.start.isoformat()}') TO ('{part.end.isoformat()}')"
        )


def _drop(part: Part) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {part.level.table} DETACH PARTITION {part.name}")
        cursor.execute(f"DROP TABLE {part.name}")
