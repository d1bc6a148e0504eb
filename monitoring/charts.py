"""Which charts and tiles a page shows, and what stands in them. All text is for a reader."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from monitoring import metrics as m
from monitoring.metrics import Metric

Text = str | Promise

DISPLAY: dict[str, tuple[str, float]] = {
    "ratio": ("%", 100.0),
    "bytes": ("GiB", 2.0**-30),
    "seconds": ("ms", 1000.0),
    "celsius": ("°C", 1.0),
    "watts": ("W", 1.0),
}
"""Stored unit -> what a person reads, and the factor; any other is shown as it is stored."""

IDLE = _("Nothing has been generated in this time.")
UNASKED = _("No request has been answered in this time.")
STILL = _("No step ran in this time.")
SILENT = _("No reading has arrived in this time.")
NO_ENGINE = _("No engine has reported in this time.")


@dataclass(frozen=True)
class Chart:
    title: Text
    lines: tuple[tuple[Metric, Text], ...]
    """Metrics of one unit; a name tells them apart where there are several."""
    role: str
    """Whose lines: `node`, `engine` or `rank`."""
    empty: Text
    """Said when the whole span holds no value and no reason came with it."""
    ceiling: float | Metric | None = None
    """Top of the axis in stored units: a number, a metric to read it from, or as it comes."""

    def spec(self) -> dict[str, Any]:
        unit, factor = DISPLAY.get(self.lines[0][0].unit, (self.lines[0][0].unit, 1.0))
        return {
            "title": str(self.title),
            "unit": unit,
            "factor": factor,
            "role": self.role,
            "lines": [{"metric": metric.name, "name": str(name)} for metric, name in self.lines],
            "empty": str(self.empty),
            "ceiling": self.ceiling.name if isinstance(self.ceiling, Metric) else self.ceiling,
        }


@dataclass(frozen=True)
class Tile:
    """The latest value; over several subjects their `sum` or `max`."""

    label: Text
    metric: Metric
    role: str
    combine: str = "max"

    def spec(self) -> dict[str, Any]:
        unit, factor = DISPLAY.get(self.metric.unit, (self.metric.unit, 1.0))
        return {
            "label": str(self.label),
            "metric": self.metric.name,
            "unit": unit,
            "factor": factor,
            "role": self.role,
            "combine": self.combine,
        }


CPU = Chart(_("CPU"), ((m.CPU_UTILIZATION, ""),), "node", SILENT, 1.0)
MEMORY = Chart(_("Memory"), ((m.MEMORY_USED, ""),), "node", SILENT, m.MEMORY_TOTAL)
SPEED = Chart(_("Generation"), ((m.TOKENS_PER_SECOND, ""),), "engine", IDLE)
FIRST_TOKEN = Chart(_("Time to first token"), ((m.TIME_TO_FIRST_TOKEN, ""),), "engine", UNASKED)
QUEUE = Chart(
    _("Requests"),
    ((m.REQUESTS_RUNNING, _("running")), (m.REQUESTS_WAITING, _("waiting"))),
    "engine",
    NO_ENGINE,
)
KV = Chart(_("KV cache in use"), ((m.KV_USAGE, ""),), "engine", NO_ENGINE, 1.0)
STEP = Chart(_("Step time"), ((m.STEP_SECONDS, ""),), "rank", STILL)
EXCHANGE = Chart(_("Communication share"), ((m.COMMUNICATE_SHARE, ""),), "rank", STILL, 1.0)
BUBBLE = Chart(_("Bubble"), ((m.BUBBLE, ""),), "rank", STILL, 1.0)

CHARTS: dict[str, tuple[Chart, ...]] = {
    "fleet": (SPEED, FIRST_TOKEN, CPU, MEMORY, QUEUE, KV),
    "node": (CPU, MEMORY, STEP, EXCHANGE),
    "deployment": (SPEED, FIRST_TOKEN, QUEUE, KV, STEP, EXCHANGE, BUBBLE, CPU, MEMORY),
}

_SPEED_TILE = Tile(_("Generation"), m.TOKENS_PER_SECOND, "engine", "sum")
_FIRST_TILE = Tile(_("Time to first token"), m.TIME_TO_FIRST_TOKEN, "engine")
_RUNNING_TILE = Tile(_("Running"), m.REQUESTS_RUNNING, "engine", "sum")
_WAITING_TILE = Tile(_("Waiting"), m.REQUESTS_WAITING, "engine", "sum")
_KV_TILE = Tile(_("KV cache in use"), m.KV_USAGE, "engine")

TILES: dict[str, tuple[Tile, ...]] = {
    "fleet": (_SPEED_TILE, _FIRST_TILE, _RUNNING_TILE, _WAITING_TILE),
    "node": (
        Tile(_("CPU"), m.CPU_UTILIZATION, "node"),
        Tile(_("Memory"), m.MEMORY_USED, "node"),
        Tile(_("Accelerator"), m.GPU_UTILIZATION, "node"),
        Tile(_("Power"), m.POWER, "node"),
        Tile(_("Temperature"), m.TEMPERATURE, "node"),
    ),
    "deployment": (
        _SPEED_TILE,
        _FIRST_TILE,
        Tile(_("Between tokens"), m.INTER_TOKEN_LATENCY, "engine"),
        _RUNNING_TILE,
        _WAITING_TILE,
        _KV_TILE,
    ),
}


def panel(scope: str) -> dict[str, Any]:
    """Charts and tiles of a page in the reader's language, as its script wants them."""
    return {
        "charts": [chart.spec() for chart in CHARTS[scope]],
        "tiles": [tile.spec() for tile in TILES[scope]],
    }


def metrics(scope: str) -> frozenset[str]:
    """Every metric a page of this scope draws."""
    return frozenset(_metrics(scope))


def _metrics(scope: str) -> Iterator[str]:
    for chart in CHARTS[scope]:
        yield from (metric.name for metric, _name in chart.lines)
        if isinstance(chart.ceiling, Metric):
            yield chart.ceiling.name
    yield from (tile.metric.name for tile in TILES[scope])
