"""The table of components and boxes: what differs between boxes of a pair. Pure but for the rows
it is given."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dashboard.choices import Component
from dashboard.firmware.fitting import differences
from dashboard.models import FirmwarePart, Node, TestedSet


@dataclass(frozen=True)
class Column:
    node: Node
    parts: Sequence[FirmwarePart]
    sets: Sequence[str]
    """Names of the tested sets that it keeps to."""


@dataclass(frozen=True)
class Row:
    component: str
    label: str
    name: str
    cells: Sequence[FirmwarePart | None]
    """One a column; None where the box has no such component."""
    differs: bool


def columns(nodes: Sequence[Node], sets: Sequence[TestedSet]) -> list[Column]:
    """`nodes` with their firmware prefetched."""
    found = []
    for node in nodes:
        parts = list(node.firmware.all())
        kept = [held.name for held in sets if parts and not differences(held.versions, parts)]
        found.append(Column(node, parts, kept))
    return found


def rows(shown: Sequence[Column]) -> list[Row]:
    """By component, in the order of `Component`; parts line up by their names."""
    by_name: dict[tuple[int, str], dict[int, FirmwarePart]] = {}
    for place, column in enumerate(shown):
        for part in column.parts:
            by_name.setdefault(_order(part), {}).setdefault(place, part)
    return [
        _row(name, held, len(shown))
        for (_place, name), held in sorted(by_name.items(), key=lambda item: item[0])
    ]


def in_order(parts: Iterable[FirmwarePart]) -> list[FirmwarePart]:
    return sorted(parts, key=_order)


def _order(part: FirmwarePart) -> tuple[int, str]:
    places = {value: place for place, value in enumerate(Component.values)}
    return places.get(part.component, len(places)), part.name


def _row(name: str, held: Mapping[int, FirmwarePart], width: int) -> Row:
    first = next(iter(held.values()))
    versions = {(part.active, part.staged) for part in held.values() if part.active}
    return Row(
        component=first.component,
        label=first.get_component_display(),
        name=name,
        cells=[held.get(place) for place in range(width)],
        differs=len(versions) > 1,
    )
