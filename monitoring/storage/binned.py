"""Readings and roll-ups out of Postgres, in bins: of each number only what is asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from monitoring.storage.levels import SECOND, Level
from monitoring.storage.shapes import BUCKET, HIGHEST, LEVEL, LOWEST

MOST_PLACES = 400
"""Four columns each, and Postgres takes 1,664."""
TENTH_OF_TEN = repr(10**0.1)
"""To its power, a decibel needs no division, which Postgres refuses of the smallest numbers."""
LOUDEST, SOFTEST = 3000, -3000
"""Decibels beyond which a power of ten is no number any more."""

Asked = tuple[int, str]
"""Where a number stands, from 0, and its shape."""
Cell = tuple[int, float | None, float | None, float | None]
"""n, low, value, high"""
Row = tuple[int, float, int, list[Cell]]
"""Layout, the bin's beginning in Unix seconds, which of the numbers asked for comes first here, and
a cell for each from there on."""


@dataclass(frozen=True)
class Stretch:
    """A part of the time, and the level it is read from."""

    level: Level
    since: datetime
    until: datetime


def rows(
    stretch: Stretch, layouts: Sequence[int], asked: Sequence[Asked], width: int
) -> Iterator[Row]:
    """In no order. Where `width` is one second, a row is a reading at its own instant."""
    if stretch.since >= stretch.until:
        return
    for first in range(0, len(asked), MOST_PLACES):
        part = asked[first : first + MOST_PLACES]
        with connection.cursor() as cursor:
            cursor.execute(
                _sql(stretch.level, part, width),
                {
                    "layouts": list(layouts),
                    "since": stretch.since,
                    "until": stretch.until,
                    "width": width,
                },
            )
            fetched = cursor.fetchall()
        for row in fetched:
            cells = [row[i : i + 4] for i in range(2, len(row), 4)]
            yield row[0], row[1], first, cells


def _sql(level: Level, asked: Sequence[Asked], width: int) -> str:
    where = "layout_id = ANY(%(layouts)s) AND at >= %(since)s AND at < %(until)s"
    if width == 1:
        columns = ", ".join(_single(index + 1) for index, _shape in asked)
        return f"SELECT layout_id, {_seconds('at')}, {columns} FROM {level.table} WHERE {where}"
    of = _of_readings if level is SECOND else _of_buckets
    columns = ", ".join(of(index + 1, shape) for index, shape in asked)
    start = "date_bin(make_interval(secs => %(width)s), at, 'epoch')"
    return (
        f"SELECT layout_id, {_seconds('bin')}, {columns} "
        f"FROM (SELECT *, {start} AS bin FROM {level.table} WHERE {where}) AS rows "
        "GROUP BY layout_id, bin"
    )


def _seconds(column: str) -> str:
    return f"extract(epoch FROM {column})::float8"


def _single(i: int) -> str:
    v = f"numbers[{i}]"
    return f"({v} IS NOT NULL)::int, {v}, {v}, {v}"


def _of_readings(i: int, shape: str) -> str:
    v = f"numbers[{i}]"
    value = f"avg({v})"
    if shape == LEVEL:
        value = f"10 * log(sum({energy(v)}) / count({v}))"
    elif shape == BUCKET:
        value = f"max({v})"
    return f"count({v}), min({v}), {value}, max({v})"


def _of_buckets(i: int, shape: str) -> str:
    n, low, mean, high = (f"{column}[{i}]" for column in ("n", "low", "mean", "high"))
    values = {
        LEVEL: f"10 * log(sum({n} * {energy(mean)}) / nullif(sum({n}), 0))",
        BUCKET: f"max(last[{i}])",
        LOWEST: f"min({low})",
        HIGHEST: f"max({high})",
    }
    value = values.get(shape) or f"sum({n} * {mean}) / nullif(sum({n}), 0)"
    return f"sum({n}), min({low}), {value}, max({high})"


def energy(v: str) -> str:
    """Of a level in decibels, in SQL."""
    bounded = f"least(greatest({v}, {SOFTEST}), {LOUDEST})"  # These two pass over null.
    return f"CASE WHEN {v} IS NOT NULL THEN power({TENTH_OF_TEN}::float8, {bounded}) END"
