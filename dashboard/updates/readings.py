"""What the boxes' own readings say of a node: how fast its clocks and its cable have been."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Max
from django.utils import timezone

from dashboard.models import Node
from monitoring.metrics import GPU_CLOCK, LINK_SPEED, Metric
from monitoring.models import Layout, Minute, NodeLimits, Reading

DAY = timedelta(days=1)
RECENT = timedelta(minutes=2)


def clocks_of_a_day(node: Node) -> dict[str, float]:
    """Accelerator -> the highest clock that it reached; those that tell none are not in it."""
    return _highest(node, GPU_CLOCK, "sm", Minute, "high", timezone.now() - DAY)


def clocks_since(node: Node, since: datetime) -> dict[str, float]:
    return _highest(node, GPU_CLOCK, "sm", Reading, "numbers", since)


def link_speeds(node: Node) -> dict[str, float]:
    """Interface to the other boxes -> bits/s, as it read a moment ago."""
    since = timezone.now() - RECENT
    found: dict[str, float] = {}
    for layout, place, label in _places(node, LINK_SPEED):
        numbers = Reading.objects.filter(layout=layout, at__gte=since).order_by("-at")
        number = numbers.values_list(f"numbers__{place}", flat=True).first()
        if number is not None:
            found[label] = max(number, found.get(label, 0.0))
    return found


def is_held_back(node: Node) -> bool:
    """Whether quiet hours or caps keep its clocks down on purpose."""
    wanted = NodeLimits.objects.filter(node=node).values_list("wanted", flat=True).first()
    return bool(wanted)


def _highest(
    node: Node,
    metric: Metric,
    label: str,
    table: type[Minute] | type[Reading],
    column: str,
    since: datetime,
) -> dict[str, float]:
    found: dict[str, float] = {}
    for layout, place, named in _places(node, metric):
        if named == label:
            rows = table.objects.filter(layout=layout, at__gte=since)
            value = rows.aggregate(most=Max(f"{column}__{place}"))["most"]
            if value is not None:
                found[layout.subject] = max(value, found.get(layout.subject, 0.0))
    return found


def _places(node: Node, metric: Metric) -> Iterator[tuple[Layout, int, str]]:
    """Where numbers of the metric stand, with their labels."""
    for layout in Layout.objects.filter(node=node):
        for place, field in enumerate(layout.fields):
            if field[0] == metric.name:
                yield layout, place, str(field[6])
