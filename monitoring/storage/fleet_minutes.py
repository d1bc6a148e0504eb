"""What sums up the fleet by the minute, so that a chart of it does not read every subject."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

import msgspec
from django.db import connection

from monitoring.models import Layout
from monitoring.packing import Field
from monitoring.samples import gettext_noop, series_key
from monitoring.storage.shapes import BUCKET, COUNTER, GAUGE, shapes_of
from monitoring.storage.summing import upsert

SOURCE = "fleet"
NOBODY = gettext_noop("Nothing in this group has a reading of it.")
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
    SELECT at, max(n) AS rows, max(covered) AS covered FROM summed GROUP BY at
), told AS (
    SELECT t.at, t.rows, t.covered, f.field, f.label, f.grows, s.*
    FROM moment t
    CROSS JOIN unnest(%(field_series)s::int[], %(field_labels)s::text[], %(field_grows)s::bool[])
        WITH ORDINALITY AS f (series, label, grows, field)
    LEFT JOIN LATERAL (
        SELECT n, sum, mean, low, high, count, last, gain FROM summed
        WHERE summed.at = t.at AND summed.series = f.series
    ) AS s ON true
), valued AS (
    SELECT told.*, CASE label WHEN 'sum' THEN sum WHEN 'mean' THEN mean WHEN 'low' THEN low
        WHEN 'high' THEN high WHEN 'count' THEN coalesce(count, 0) END AS value
    FROM told
)
SELECT %(layout)s::bigint, at, rows, covered,
    array_agg(coalesce(n, CASE label WHEN 'count' THEN 1 ELSE 0 END) ORDER BY field),
    array_agg(CASE label WHEN 'mean' THEN low WHEN 'low' THEN low WHEN 'high' THEN high
        WHEN 'count' THEN value END ORDER BY field),
    array_agg(value ORDER BY field),
    array_agg(CASE label WHEN 'mean' THEN high WHEN 'low' THEN low WHEN 'high' THEN high
        WHEN 'count' THEN value END ORDER BY field),
    array_agg(CASE WHEN grows THEN last ELSE value END ORDER BY field),
    array_agg(CASE WHEN grows THEN gain END ORDER BY field)
FROM valued GROUP BY at, rows, covered
"""
"""The extremes of a sum within a minute are not known from the members' extremes: they are null."""

FORGET_MINUTES = """
DELETE FROM monitoring_minute WHERE at >= %s AND at < %s AND layout_id <> %s
  AND layout_id IN (SELECT id FROM monitoring_layout WHERE node_id IS NULL AND subject = %s)
"""
"""A minute that is done again may have other series: two rows of one group would count double."""
FORGET_HOURS = """
DELETE FROM monitoring_hour h WHERE h.at >= %s AND h.at < %s
  AND h.layout_id IN (SELECT id FROM monitoring_layout WHERE node_id IS NULL)
  AND NOT EXISTS (
    SELECT 1 FROM monitoring_minute m
    WHERE m.layout_id = h.layout_id AND m.at >= h.at AND m.at < h.at + interval '1 hour'
  )
"""


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


@dataclass
class Members:
    """Of one group: by layout the series that have values, and where; and what has none."""

    layouts: dict[int, list[tuple[Summed, int]]] = field(default_factory=dict)
    present: set[Summed] = field(default_factory=set)
    absent: set[Summed] = field(default_factory=set)

    def add(self, layout: int, fields: Sequence[Field], shapes: str) -> None:
        """Not levels of sound, nor what labels tell apart within a subject."""
        found = self.layouts[layout] = []
        for place, (described, shape) in enumerate(zip(fields, shapes, strict=True), start=1):
            metric, unit, _source, kind, scope, _reason, label = described
            if shape != BUCKET and (shape not in (GAUGE, COUNTER) or label):
                continue
            one = Summed(metric, unit, scope, label, shape)
            if kind == "unavailable":
                self.absent.add(one)
            else:
                self.present.add(one)
                found.append((one, place))


def sum_up(since: datetime, until: datetime) -> None:
    """Write the groups' minutes from those of their members, within the caller's transaction."""
    for group, members in _members(since, until).items():
        if members.present | members.absent:
            _write(f"group:{group}", members, since, until)


def forget_hours(since: datetime, until: datetime) -> None:
    """Of layouts that the groups' minutes were rewritten without."""
    with connection.cursor() as cursor:
        cursor.execute(FORGET_HOURS, [since, until])


def group_of(subject: str) -> str | None:
    """`node`, `gpu` or `engine`; ranks are in none."""
    kind, _, rest = subject.partition(":")
    if kind == "launch":
        return None if ":" in rest else "engine"
    return kind if kind in ("node", "gpu") else None


def _members(since: datetime, until: datetime) -> dict[str, Members]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, subject, fields, shapes FROM monitoring_layout "
            "WHERE node_id IS NOT NULL AND id IN "
            "(SELECT layout_id FROM monitoring_minute WHERE at >= %s AND at < %s)",
            [since, until],
        )
        rows = cursor.fetchall()
    members: dict[str, Members] = defaultdict(Members)
    for pk, subject, fields, shapes in rows:
        group = group_of(subject)
        if group is not None:
            members[group].add(pk, msgspec.json.decode(fields), shapes)
    return members


def _write(subject: str, members: Members, since: datetime, until: datetime) -> None:
    series = sorted(members.present | members.absent, key=_order)
    numbers = {one: number for number, one in enumerate(series, start=1)}
    places = [
        (layout, place, numbers[one])
        for layout, found in members.layouts.items()
        for one, place in found
    ]
    told = [(one, label) for one in series for label in one.labels]
    layout = _layout(subject, [_field(one, label, one in members.present) for one, label in told])
    given: dict[str, Any] = {
        "layout": layout,
        "layouts": [layout for layout, _place, _series in places],
        "places": [place for _layout, place, _series in places],
        "series": [one for _layout, _place, one in places],
        "field_series": [numbers[one] for one, _label in told],
        "field_labels": [label for _one, label in told],
        "field_grows": [one.shape != GAUGE for one, _label in told],
        "since": since,
        "until": until,
    }
    with connection.cursor() as cursor:
        cursor.execute(FORGET_MINUTES, [since, until, layout, subject])
        cursor.execute(upsert("minute", SUM_UP), given)


def _order(series: Summed) -> str:
    return series_key(series.metric, series.scope, series.label)


def _field(series: Summed, label: str, present: bool) -> Field:
    known = present or label == COUNT
    kind, reason = ("derived", "") if known else ("unavailable", NOBODY)
    return (series.metric, series.unit, SOURCE, kind, series.scope, reason, label)


def _layout(subject: str, fields: list[Field]) -> int:
    digest = blake2b(msgspec.msgpack.encode(fields), digest_size=16).hexdigest()
    layout, _made = Layout.objects.get_or_create(
        node=None,
        subject=subject,
        digest=digest,
        defaults={"fields": fields, "shapes": shapes_of(subject, fields)},
    )
    return layout.pk
