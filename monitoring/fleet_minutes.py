"""What sums up the fleet by the minute, so that a chart of it does not read every subject."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

import msgspec
from django.db import connection

from monitoring.models import Layout
from monitoring.packing import Field
from monitoring.samples import series_key
from monitoring.shapes import BUCKET, COUNTER, GAUGE, shapes_of
from monitoring.summing import upsert

SOURCE = "fleet"
SUM, MEAN, LOW, HIGH, COUNT = LABELS = ("sum", "mean", "low", "high", "count")

SUM_UP = """
WITH member AS (
    SELECT * FROM unnest(%(layouts)s::bigint[], %(places)s::int[], %(series)s::int[])
        AS m (layout_id, place, series)
), subject AS (
    SELECT m.series, r.at, l.node_id, l.subject, max(r.n[m.place]) AS n,
        min(r.low[m.place]) AS low, max(r.high[m.place]) AS high,
        sum(r.n[m.place] * r.mean[m.place]) / nullif(sum(r.n[m.place]), 0) AS mean,
        max(r.last[m.place]) AS last, sum(r.gain[m.place]) AS gain, sum(r.covered) AS covered
    FROM monitoring_minute r JOIN member m ON m.layout_id = r.layout_id
    JOIN monitoring_layout l ON l.id = r.layout_id
    WHERE r.at >= %(since)s AND r.at < %(until)s AND r.n[m.place] > 0
    GROUP BY m.series, r.at, l.node_id, l.subject
), summed AS (
    SELECT series, at, max(n) AS n, max(covered) AS covered, sum(mean) AS sum, avg(mean) AS mean,
        min(low) AS low, max(high) AS high, count(*)::float8 AS count, sum(last) AS last,
        sum(gain) AS gain
    FROM subject GROUP BY series, at
), moment AS (
    SELECT at, max(covered) AS covered FROM summed GROUP BY at
), told AS (
    SELECT t.at, t.covered, f.field, f.label, f.grows, s.*
    FROM moment t
    CROSS JOIN unnest(%(field_series)s::int[], %(field_labels)s::text[], %(field_grows)s::bool[])
        WITH ORDINALITY AS f (series, label, grows, field)
    LEFT JOIN LATERAL (
        SELECT n, sum, mean, low, high, count, last, gain FROM summed
        WHERE summed.at = t.at AND summed.series = f.series
    ) AS s ON true
), valued AS (
    SELECT told.*, CASE label WHEN 'sum' THEN sum WHEN 'mean' THEN mean WHEN 'low' THEN low
        WHEN 'high' THEN high WHEN 'count' THEN count END AS value
    FROM told
)
SELECT %(layout)s::bigint, at, covered, array_agg(coalesce(n, 0) ORDER BY field),
    array_agg(CASE label WHEN 'mean' THEN low WHEN 'low' THEN low WHEN 'high' THEN high
        WHEN 'count' THEN count END ORDER BY field),
    array_agg(value ORDER BY field),
    array_agg(CASE label WHEN 'mean' THEN high WHEN 'low' THEN low WHEN 'high' THEN high
        WHEN 'count' THEN count END ORDER BY field),
    array_agg(CASE WHEN grows THEN last ELSE value END ORDER BY field),
    array_agg(CASE WHEN grows THEN gain END ORDER BY field)
FROM valued GROUP BY at, covered
"""
"""The extremes of a sum within a minute are not known from the members' extremes: they are null."""


@dataclass(frozen=True)
class Summed:
    """One series of a group and the fields that tell it."""

    metric: str
    unit: str
    scope: str
    label: str
    shape: str

    @property
    def labels(self) -> tuple[str, ...]:
        if self.shape == GAUGE:
            return LABELS
        return (self.label if self.shape == BUCKET else SUM,)


_Layouts = dict[int, list[tuple[Summed, int]]]


def sum_up(since: datetime, until: datetime) -> None:
    """Write the groups' minutes from those of their members, within the caller's transaction."""
    for group, layouts in _members(since, until).items():
        series = sorted({s for found in layouts.values() for s, _place in found}, key=_order)
        if series:
            _write(f"group:{group}", layouts, series, since, until)


def group_of(subject: str) -> str | None:
    """`node`, `gpu` or `engine`; ranks are in none."""
    kind, _, rest = subject.partition(":")
    if kind == "launch":
        return None if ":" in rest else "engine"
    return kind if kind in ("node", "gpu") else None


def _members(since: datetime, until: datetime) -> dict[str, _Layouts]:
    """Group -> layout -> the series it has, and where."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, subject, fields, shapes FROM monitoring_layout "
            "WHERE node_id IS NOT NULL AND id IN "
            "(SELECT layout_id FROM monitoring_minute WHERE at >= %s AND at < %s)",
            [since, until],
        )
        rows = cursor.fetchall()
    members: dict[str, _Layouts] = defaultdict(dict)
    for pk, subject, fields, shapes in rows:
        group = group_of(subject)
        if group is not None:
            members[group][pk] = list(_summable(msgspec.json.decode(fields), shapes))
    return members


def _summable(fields: Iterable[Field], shapes: str) -> Iterable[tuple[Summed, int]]:
    """What may be summed up: not levels of sound, nor what labels tell apart within a subject."""
    for place, (field, shape) in enumerate(zip(fields, shapes, strict=True), start=1):
        metric, unit, _source, _kind, scope, _reason, label = field
        if shape == BUCKET or (shape in (GAUGE, COUNTER) and not label):
            yield Summed(metric, unit, scope, label, shape), place


def _order(series: Summed) -> str:
    return series_key(series.metric, series.scope, series.label)


def _write(
    subject: str, layouts: _Layouts, series: list[Summed], since: datetime, until: datetime
) -> None:
    numbers = {one: number for number, one in enumerate(series, start=1)}
    members = [
        (layout, place, numbers[one]) for layout, found in layouts.items() for one, place in found
    ]
    told = [(numbers[one], label, one.shape != GAUGE) for one in series for label in one.labels]
    fields: list[Field] = [
        (one.metric, one.unit, SOURCE, "derived", one.scope, "", label)
        for one in series
        for label in one.labels
    ]
    given = {
        "layout": _layout(subject, fields).pk,
        "layouts": [layout for layout, _place, _series in members],
        "places": [place for _layout, place, _series in members],
        "series": [one for _layout, _place, one in members],
        "field_series": [number for number, _label, _grows in told],
        "field_labels": [label for _number, label, _grows in told],
        "field_grows": [grows for _number, _label, grows in told],
        "since": since,
        "until": until,
    }
    with connection.cursor() as cursor:
        cursor.execute(upsert("minute", SUM_UP), given)


def _layout(subject: str, fields: list[Field]) -> Layout:
    digest = blake2b(msgspec.msgpack.encode(fields), digest_size=16).hexdigest()
    layout, _made = Layout.objects.get_or_create(
        node=None,
        subject=subject,
        digest=digest,
        defaults={"fields": fields, "shapes": shapes_of(subject, fields)},
    )
    return layout
