"""The stored past of what a page looks at, in columns, in as many points as a screen shows."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext

from monitoring import charts
from monitoring.models import Layout, Reading
from monitoring.scopes import ScopeName, Subject, subjects, topic_of

GAP_SECONDS = 2.5
"""Readings further apart than this are not joined by a line."""
MAX_ROWS = 1000
"""Points a line; a longer past keeps the extremes of each of its buckets."""

Row = tuple[float, tuple[float | None, ...]]
"""Unix seconds, and a number for each metric asked for."""


@dataclass
class _Track:
    """One subject's rows, and what its metrics are at the end of them."""

    rows: list[Row] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)


def seed(scope: ScopeName, pk: int | None, minutes: int) -> dict[str, Any]:
    """`t` is in seconds after `from`; `v` stands under it, null where there is no value."""
    wanted = subjects(scope, pk)
    until = timezone.now()
    since = until - timedelta(minutes=minutes)
    names = sorted(charts.metrics(scope))
    tracks = _tracks(wanted, names, since)
    return {
        "now": until.timestamp(),
        "from": since.timestamp(),
        "subjects": [
            _subject_json(subject, tracks.get(subject.topic, _Track()), names, since.timestamp())
            for subject in wanted
        ],
    }


def _tracks(wanted: Iterable[Subject], names: Sequence[str], since: datetime) -> dict[str, _Track]:
    layouts = _layouts(wanted)
    places = {pk: _places(layout, names) for pk, layout in layouts.items()}
    tracks: dict[str, _Track] = {}
    rows = Reading.objects.filter(layout__in=layouts, at__gte=since).order_by("at")
    for layout_id, at, numbers in rows.values_list("layout_id", "at", "numbers"):
        layout = layouts[layout_id]
        track = tracks.setdefault(topic_of(layout.node_id, layout.subject), _Track())
        picked = tuple(None if i is None else numbers[i] for i in places[layout_id])
        track.rows.append((at.timestamp(), picked))
        track.fields = layout.by_metric
    return tracks


def _layouts(wanted: Iterable[Subject]) -> dict[int, Layout]:
    condition = Q(pk=None)
    for subject in wanted:
        place = Q() if subject.node is None else Q(node=subject.node)
        condition |= place & Q(subject=subject.subject)
    return {layout.pk: layout for layout in Layout.objects.filter(condition)}


def _places(layout: Layout, names: Sequence[str]) -> list[int | None]:
    """Where in the layout's numbers each metric stands; the first where there are several."""
    order = [name for name, *_rest in layout.fields]
    return [order.index(name) if name in order else None for name in names]


def _subject_json(
    subject: Subject, track: _Track, names: Sequence[str], origin: float
) -> dict[str, Any]:
    rows = list(_with_gaps(thin(track.rows, MAX_ROWS)))
    return {
        "topic": subject.topic,
        "label": subject.label,
        "role": subject.role,
        "rank": int(subject.rank) if subject.rank else None,
        "t": [round(at - origin, 2) for at, _numbers in rows],
        "metrics": {
            name: _metric_json(track.fields[name], [_short(n[index]) for _at, n in rows])
            for index, name in enumerate(names)
            if name in track.fields
        },
    }


def _metric_json(described: Sequence[str], values: list[float | None]) -> dict[str, Any]:
    _metric, unit, source, kind, _scope, reason, _label = described
    return {
        "unit": unit,
        "source": source,
        "kind": kind,
        "reason": gettext(reason) if reason else "",
        "v": values,
    }


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.6g}")


def thin(rows: Sequence[Row], most: int) -> list[Row]:
    """At most about `most` rows: each bucket's minima, then its maxima, so no extreme is lost.

    A metric is null in a bucket only where it is null throughout.
    """
    if len(rows) <= most:
        return list(rows)
    size = -(-len(rows) * 2 // most)
    thinned: list[Row] = []
    for start in range(0, len(rows), size):
        bucket = rows[start : start + size]
        columns = [_known(column) for column in zip(*(row[1] for row in bucket), strict=True)]
        middle = bucket[len(bucket) // 2][0]
        thinned.append((bucket[0][0], tuple(min(c, default=None) for c in columns)))
        thinned.append((middle, tuple(max(c, default=None) for c in columns)))
    return thinned


def _known(column: Iterable[float | None]) -> list[float]:
    return [number for number in column if number is not None]


def _with_gaps(rows: Collection[Row]) -> Iterable[Row]:
    """A row of nulls wherever nothing was read for longer than the rows' usual distance."""
    usual = max(1.0, _median_step(list(rows)))
    previous: float | None = None
    for at, numbers in rows:
        if previous is not None and at - previous > GAP_SECONDS * usual:
            yield previous + usual, (None,) * len(numbers)
        yield at, numbers
        previous = at


def _median_step(rows: Sequence[Row]) -> float:
    steps = sorted(b[0] - a[0] for a, b in pairwise(rows))
    return steps[len(steps) // 2] if steps else 1.0
