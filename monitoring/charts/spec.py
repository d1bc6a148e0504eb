"""What a chart, a line, a tile and a panel are, as pages are told of them."""

from dataclasses import dataclass
from typing import Any, Literal

from django.utils.functional import Promise

from monitoring.metrics import Metric

Text = str | Promise
Group = Literal["mean", "sum"]

EVERY: None = None
"""Each label is a line of its own."""
TOTAL = "*"
"""The reading without a label, which stands for the others; without one, each."""


@dataclass(frozen=True)
class Line:
    """A counter is drawn as what it grew by in a second."""

    metric: Metric
    name: Text = ""
    """Tells the lines of one subject apart."""
    scope: str = ""
    """Only this scope; else any."""
    label: str | None = ""
    """Only this label, `EVERY` or `TOTAL`."""
    band: Metric | None = None
    """Half the width of what the value may really be."""
    group: Group = "mean"
    """How a fleet too large for a line each is summed up."""
    per: float = 1.0
    """Seconds that a counter's growth is told for."""

    def spec(self) -> dict[str, Any]:
        return {
            "metric": self.metric.name,
            "name": str(self.name),
            "scope": self.scope,
            "label": self.label,
            "rate": self.metric.shape == "counter",
            "per": self.per,
            "band": self.band.name if self.band else "",
            "group": self.group,
        }


@dataclass(frozen=True)
class Chart:
    title: Text
    lines: tuple[Line, ...]
    """Of one unit."""
    roles: tuple[str, ...]
    """Whose lines: `node`, `gpu`, `engine` or `rank`."""
    empty: Text
    """Said when the whole span holds no value and no reason came with it."""
    ceiling: float | Metric | None = None
    """Top of the axis: a number, a metric to read it from, or as it comes."""
    zero: bool = True
    """Whether the axis begins at nothing."""
    unit: str = ""
    """Else the first line's."""
    heat: bool = False
    """Shares by label as a map of time and label, instead of lines."""

    def spec(self) -> dict[str, Any]:
        return {
            "title": str(self.title),
            "unit": self.unit or self.lines[0].metric.unit,
            "roles": list(self.roles),
            "lines": [line.spec() for line in self.lines],
            "empty": str(self.empty),
            "ceiling": self.ceiling.name if isinstance(self.ceiling, Metric) else self.ceiling,
            "zero": self.zero,
            "heat": self.heat,
        }


@dataclass(frozen=True)
class Tile:
    """The latest value; over several subjects their `sum` or `max`."""

    label: Text
    metric: Metric
    roles: tuple[str, ...]
    combine: str = "max"
    scope: str = ""
    label_of: str = ""

    def spec(self) -> dict[str, Any]:
        return {
            "label": str(self.label),
            "metric": self.metric.name,
            "unit": self.metric.unit,
            "roles": list(self.roles),
            "combine": self.combine,
            "scope": self.scope,
            "seriesLabel": self.label_of,
        }


@dataclass(frozen=True)
class Panel:
    scope: str
    charts: tuple[Chart, ...]
    tiles: tuple[Tile, ...]
