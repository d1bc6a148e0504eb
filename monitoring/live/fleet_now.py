"""What sums up the fleet now, from the newest readings of the members of `group:node`, `group:gpu`
and `group:engine`. Minutes of the same are in `fleet_minutes`."""

from collections.abc import Iterable, Sequence

from monitoring.live.frames import CheckedLayout
from monitoring.live.spots import Spot
from monitoring.packing import Field, Numbers
from monitoring.storage.fleet_minutes import LABELS, NOBODY, SOURCE, SUM, group_of
from monitoring.storage.shapes import COUNTER, GAUGE, shapes_of

GROUPS = ("node", "gpu", "engine")

Column = tuple[str, str, str, str]
"""Metric, unit, scope and shape. What a label tells apart within a member is not summed up."""


def sum_up(spots: Iterable[Spot], groups: Iterable[str], at: float) -> list[Spot]:
    """One for each of the groups, of those spots that are its members."""
    members: dict[str, list[Spot]] = {group: [] for group in groups}
    for spot in spots:
        group = group_of(spot.subject)
        if group in members:
            members[group].append(spot)
    return [_sum_up(f"group:{group}", found, at) for group, found in members.items()]


def _sum_up(subject: str, members: Iterable[Spot], at: float) -> Spot:
    columns = _columns(members)
    fields: list[Field] = []
    numbers: list[float | None] = []
    for metric, unit, scope, shape in sorted(columns):
        values = columns[metric, unit, scope, shape]
        labels = LABELS if shape == GAUGE else (SUM,)
        for label, number in zip(labels, _summary(values), strict=False):
            kind, reason = ("derived", "") if number is not None else ("unavailable", NOBODY)
            fields.append((metric, unit, SOURCE, kind, scope, reason, label))
            numbers.append(number)
    layout = CheckedLayout(subject, tuple(fields), tuple(range(len(fields))))
    return Spot(0, subject, layout, at, tuple(numbers))


def _columns(members: Iterable[Spot]) -> dict[Column, list[float]]:
    """Members of one layout are read as a table, by column: a fleet has few layouts."""
    tables: dict[str, tuple[Spot, list[Numbers]]] = {}
    for spot in members:
        tables.setdefault(spot.layout.digest, (spot, []))[1].append(spot.numbers)
    columns: dict[Column, list[float]] = {}
    for spot, rows in tables.values():
        fields = spot.layout.fields
        shapes = shapes_of(spot.subject, fields)
        for field, shape, told in zip(fields, shapes, zip(*rows, strict=True), strict=True):
            metric, unit, _source, _kind, scope, _reason, label = field
            if shape in (GAUGE, COUNTER) and not label:
                known = columns.setdefault((metric, unit, scope, shape), [])
                known.extend(number for number in told if number is not None)
    return columns


def _summary(values: Sequence[float]) -> tuple[float | None, ...]:
    """In the order of the labels."""
    if not values:
        return None, None, None, None, 0.0
    total = sum(values)
    return total, total / len(values), min(values), max(values), float(len(values))
