"""What counters grew by, by series and bucket, out of the roll-ups and what follows them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from django.db import connection

from monitoring.storage.binned import Stretch
from monitoring.storage.levels import SECOND
from monitoring.storage.planning import steady_plans
from monitoring.storage.summing import COLUMNS, MINUTES
from monitoring.storage.tracks import Place, SeriesId, Track, alike

SECONDS = 60
"""Longest that a page waits for its sums."""

Grown = tuple[tuple[str, float, Place], tuple[float, float]]
"""Topic, the bucket's beginning and whose; amount and covered seconds."""
Row = tuple[int, float, float, list[int], list[float | None]]
"""Layout, bucket, covered seconds; readings and growth, a number for each place."""


def by_bucket(
    tracks: Mapping[int, Track], parts: Sequence[Stretch], step: timedelta
) -> list[Grown]:
    """In order of time. Where nothing is known of a series' growth, there is no entry."""
    sums: dict[tuple[str, float, SeriesId], tuple[Place, float, float]] = {}
    seconds = int(step.total_seconds())
    for asked, layouts in alike(tracks.values()).items():
        indices = [index for index, _shape in asked]
        for part in parts:
            for layout, at, covered, counts, gains in _rows(part, layouts, indices, seconds):
                track = tracks[layout]
                for place, n, gain in zip(track.places, counts, gains, strict=True):
                    if not n or gain is None:
                        continue
                    key = track.topic, at, place.series
                    _place, amount, known = sums.get(key, (place, 0.0, 0.0))
                    sums[key] = place, amount + gain, known + covered
    ordered = sorted(sums.items(), key=lambda item: item[0][1])
    return [
        ((topic, at, place), (amount, covered))
        for (topic, at, _series), (place, amount, covered) in ordered
    ]


def _rows(
    part: Stretch, layouts: Sequence[int], indices: Sequence[int], seconds: int
) -> Iterator[Row]:
    if part.since >= part.until:
        return
    with steady_plans(SECONDS), connection.cursor() as cursor:
        cursor.execute(
            _sql(part),
            {
                "layouts": list(layouts),
                "places": [index + 1 for index in indices],
                "since": part.since,
                "until": part.until,
                "step": seconds,
            },
        )
        rows = cursor.fetchall()
    yield from rows


def _sql(part: Stretch) -> str:
    source = MINUTES if part.level is SECOND else _rolled_up(part.level.table)
    return f"""
    SELECT layout_id, bin, max(covered), array_agg(n ORDER BY o), array_agg(gain ORDER BY o)
    FROM (
        SELECT r.layout_id, p.o, sum(r.covered) AS covered, sum(r.n[p.i]) AS n,
            sum(r.gain[p.i]) AS gain, extract(epoch FROM
            date_bin(make_interval(secs => %(step)s), r.at, 'epoch'))::float8 AS bin
        FROM ({source}) AS r ({COLUMNS})
        CROSS JOIN unnest(%(places)s::int[]) WITH ORDINALITY AS p (i, o)
        GROUP BY r.layout_id, bin, p.o
    ) AS grown
    GROUP BY layout_id, bin
    """


def _rolled_up(table: str) -> str:
    return (
        f"SELECT {COLUMNS} FROM {table} "
        "WHERE layout_id = ANY(%(layouts)s) AND at >= %(since)s AND at < %(until)s"
    )
