"""Which charts and tiles a page shows, and what stands in them. All text is for a reader.

Numbers travel in base units; the page chooses the scale (W or kW, ms or s) by what is drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from monitoring import metrics as m
from monitoring.charts.derived import DERIVED
from monitoring.charts.spec import EVERY, TOTAL, Chart, Line, Panel, Text, Tile
from monitoring.metrics import Metric

IDLE = _("Nothing has been generated in this time.")
UNASKED = _("No request has been answered in this time.")
STILL = _("No step ran in this time.")
SILENT = _("No reading has arrived in this time.")
NO_ENGINE = _("No engine has reported in this time.")
NO_ACCELERATOR = _("No accelerator has reported in this time.")
NO_POWER = _("Nothing meters power here. Add a source on the node's page.")
NO_NOISE = _("Nothing measures sound here. Add a source on the node's page.")
NO_FANS = _("No fan speed can be read here.")
NO_EXPERTS = _("This model has no experts, or none has computed anything.")

NO_ENERGY = _("Not every box of it tells its energy, or too little was written in this time.")

NODE, GPU, ENGINE, RANK = ("node",), ("gpu",), ("engine",), ("rank",)


def _percentiles(metric: Metric) -> tuple[Line, ...]:
    return (Line(metric, "p50", label="p50"), Line(metric, "p95", label="p95"))


CPU = Chart(_("CPU"), (Line(m.CPU_UTILIZATION),), NODE, SILENT, 1.0)
MEMORY = Chart(
    _("Memory in use"), (Line(m.MEMORY_USED, group="sum"),), NODE, SILENT, m.MEMORY_TOTAL
)
SPEED = Chart(_("Generation"), (Line(m.TOKENS_PER_SECOND, group="sum"),), ENGINE, IDLE)
FIRST_TOKEN = Chart(
    _("Time to first token"),
    (Line(m.TIME_TO_FIRST_TOKEN, _("median of 30 s")), *_percentiles(m.FIRST_TOKEN_QUANTILE)),
    ENGINE,
    UNASKED,
)
BETWEEN = Chart(
    _("Between tokens"),
    (Line(m.INTER_TOKEN_LATENCY, _("median of 30 s")), *_percentiles(m.INTER_TOKEN_QUANTILE)),
    ENGINE,
    UNASKED,
)
QUEUED = Chart(_("Time in queue"), _percentiles(m.QUEUE_QUANTILE), ENGINE, UNASKED)
QUEUE = Chart(
    _("Requests"),
    (
        Line(m.REQUESTS_RUNNING, _("running"), group="sum"),
        Line(m.REQUESTS_WAITING, _("waiting"), group="sum"),
    ),
    ENGINE,
    NO_ENGINE,
)
KV = Chart(_("KV cache in use"), (Line(m.KV_USAGE),), ENGINE, NO_ENGINE, 1.0)
POWER = Chart(
    _("Power"),
    (
        Line(m.POWER, _("wall"), "wall", TOTAL, group="sum"),
        Line(m.POWER, _("host"), "host", TOTAL, group="sum"),
        Line(m.POWER, _("CPU"), "cpu", TOTAL, group="sum"),
        Line(m.POWER, _("accelerator"), "accelerator", TOTAL, group="sum"),
    ),
    ("node", "gpu"),
    NO_POWER,
)
HEAT = Chart(
    _("Temperature"),
    (Line(m.TEMPERATURE), Line(m.GPU_TEMPERATURE, _("accelerator"))),
    ("node", "gpu"),
    SILENT,
    zero=False,
)
INLET = Chart(
    _("Inlet temperature"), (Line(m.INLET_TEMPERATURE, label=EVERY),), NODE, SILENT, zero=False
)
GPU_BUSY = Chart(
    _("Accelerators busy"), (Line(m.GPU_UTILIZATION, label=EVERY),), GPU, NO_ACCELERATOR, 1.0
)
GPU_MEMORY = Chart(
    _("Accelerator memory"),
    (Line(m.GPU_MEMORY_USED, label=EVERY, group="sum"),),
    GPU,
    NO_ACCELERATOR,
    m.GPU_MEMORY_TOTAL,
)
GPU_HEAT = Chart(
    _("Accelerator temperature"),
    (Line(m.GPU_TEMPERATURE, label=EVERY),),
    GPU,
    NO_ACCELERATOR,
    zero=False,
)
GPU_POWER = Chart(
    _("Accelerator power"),
    (Line(m.POWER, _("drawn"), "accelerator", EVERY), Line(m.GPU_POWER_LIMIT, _("limit"))),
    GPU,
    NO_ACCELERATOR,
)
GPU_CLOCK = Chart(_("Accelerator clock"), (Line(m.GPU_CLOCK, label=EVERY),), GPU, NO_ACCELERATOR)
FANS = Chart(_("Fans"), (Line(m.FAN_SPEED, label=EVERY),), NODE, NO_FANS)
FASTEST_FANS = Chart(_("Fastest fan"), (Line(m.FAN_SPEED, label=TOTAL),), NODE, NO_FANS)
NOISE = Chart(
    _("Noise"),
    (Line(m.NOISE, label=EVERY, band=m.NOISE_BAND),),
    NODE,
    NO_NOISE,
    zero=False,
)
LINK = Chart(
    _("Link between the boxes"),
    (
        Line(m.LINK_SENT, _("sent"), label=EVERY),
        Line(m.LINK_RECEIVED, _("received"), label=EVERY),
    ),
    NODE,
    SILENT,
    unit="bytes/s",
)
ROUND_TRIP = Chart(_("Round trip"), (Line(m.LINK_ROUND_TRIP, label=EVERY),), NODE, SILENT)
SKEW = Chart(_("Clock skew"), (Line(m.CLOCK_SKEW),), NODE, SILENT, zero=False)
STEP = Chart(_("Step time"), (Line(m.STEP_SECONDS),), RANK, STILL)
EXCHANGE = Chart(_("Communication share"), (Line(m.COMMUNICATE_SHARE),), RANK, STILL, 1.0)
BUBBLE = Chart(_("Bubble"), (Line(m.BUBBLE),), RANK, STILL, 1.0)
TOKENS = Chart(
    _("Tokens in and out"),
    (
        Line(m.PROMPT_TOKENS, _("in"), group="sum"),
        Line(m.GENERATED_TOKENS, _("out"), group="sum"),
    ),
    ENGINE,
    NO_ENGINE,
    unit="tokens/s",
)
BATCH = Chart(
    _("Batch size"),
    (Line(m.BATCH_SIZE, _("rows")), Line(m.BATCH_CAP, _("cap"))),
    ENGINE,
    STILL,
)
ENERGY = Chart(
    _("Energy by token written"),
    (Line(m.ENERGY_PER_TOKEN, _("all its boxes")),),
    ENGINE,
    NO_ENERGY,
)
PREFIX = Chart(_("Prefix hits"), (Line(m.PREFIX_HITS),), ENGINE, UNASKED, 1.0)
PREEMPTIONS = Chart(
    _("Preemptions"), (Line(m.PREEMPTIONS, per=60.0),), ENGINE, NO_ENGINE, unit="requests/min"
)
EXPERTS = Chart(
    _("Expert load"),
    (Line(m.EXPERT_TOKENS, label=EVERY),),
    ENGINE,
    NO_EXPERTS,
    heat=True,
    unit="ratio",
)

_SPEED_TILE = Tile(_("Generation"), m.TOKENS_PER_SECOND, ENGINE, "sum")
_FIRST_TILE = Tile(_("Time to first token"), m.TIME_TO_FIRST_TOKEN, ENGINE)
_RUNNING_TILE = Tile(_("Running"), m.REQUESTS_RUNNING, ENGINE, "sum")
_WAITING_TILE = Tile(_("Waiting"), m.REQUESTS_WAITING, ENGINE, "sum")
_KV_TILE = Tile(_("KV cache in use"), m.KV_USAGE, ENGINE)

PANELS: dict[str, Panel] = {
    "overview": Panel(
        "fleet",
        (SPEED, FIRST_TOKEN, CPU, MEMORY, QUEUE, KV),
        (_SPEED_TILE, _FIRST_TILE, _RUNNING_TILE, _WAITING_TILE),
    ),
    "fleet": Panel(
        "fleet",
        (
            SPEED,
            FIRST_TOKEN,
            QUEUE,
            KV,
            GPU_BUSY,
            CPU,
            POWER,
            HEAT,
            MEMORY,
            GPU_MEMORY,
            FASTEST_FANS,
            NOISE,
            LINK,
            ROUND_TRIP,
        ),
        (_SPEED_TILE, _FIRST_TILE, _RUNNING_TILE, _WAITING_TILE),
    ),
    "energy": Panel("fleet", (POWER, GPU_POWER), ()),
    "noise": Panel("fleet", (NOISE, FANS, POWER, SPEED), ()),
    "node": Panel(
        "node",
        (
            CPU,
            MEMORY,
            GPU_BUSY,
            GPU_MEMORY,
            GPU_HEAT,
            GPU_POWER,
            GPU_CLOCK,
            POWER,
            HEAT,
            FANS,
            NOISE,
            LINK,
            ROUND_TRIP,
            SKEW,
            STEP,
            EXCHANGE,
        ),
        (
            Tile(_("CPU"), m.CPU_UTILIZATION, NODE),
            Tile(_("Memory"), m.MEMORY_USED, NODE),
            Tile(_("Accelerator"), m.GPU_UTILIZATION, ("gpu", "node")),
            Tile(_("Power"), m.POWER, NODE),
            Tile(_("Temperature"), m.TEMPERATURE, NODE),
        ),
    ),
    "deployment": Panel(
        "deployment",
        (
            SPEED,
            TOKENS,
            FIRST_TOKEN,
            BETWEEN,
            QUEUED,
            QUEUE,
            BATCH,
            KV,
            PREFIX,
            PREEMPTIONS,
            STEP,
            EXCHANGE,
            BUBBLE,
            ENERGY,
            EXPERTS,
            CPU,
            MEMORY,
        ),
        (
            _SPEED_TILE,
            _FIRST_TILE,
            Tile(_("Between tokens"), m.INTER_TOKEN_LATENCY, ENGINE),
            _RUNNING_TILE,
            _WAITING_TILE,
            _KV_TILE,
        ),
    ),
}

_BESIDES: dict[str, tuple[Metric, ...]] = {
    "fleet": (
        m.LINK_ERRORS,
        m.LINK_SPEED,
        m.GPU_CLOCK,
        m.GPU_FAN,
        m.GPU_POWER_LIMIT,
        m.GPU_THROTTLED,
        m.CLOCK_SKEW,
    ),
    "node": (m.MEMORY_PAGE_CACHE, m.LINK_ERRORS, m.LINK_SPEED, m.GPU_THROTTLED),
    "deployment": (),
}
"""What a scope's pages say outside their charts and tiles."""


@dataclass(frozen=True)
class GridMetric:
    """What the heat grid of a large fleet can show of each device."""

    metric: Metric
    label: Text
    top: float | None = None
    """End of the scale; None: the greatest value there is."""


GRID: tuple[GridMetric, ...] = (
    GridMetric(m.GPU_UTILIZATION, _("Accelerators busy"), 1.0),
    GridMetric(m.GPU_TEMPERATURE, _("Accelerator temperature"), 95.0),
    GridMetric(m.POWER, _("Accelerator power")),
    GridMetric(m.GPU_MEMORY_USED, _("Accelerator memory")),
    GridMetric(m.GPU_CLOCK, _("Accelerator clock")),
)


def grid() -> list[dict[str, Any]]:
    return [
        {
            "metric": each.metric.name,
            "label": str(each.label),
            "unit": each.metric.unit,
            "top": each.top,
        }
        for each in GRID
    ]


def panel(name: str) -> dict[str, Any]:
    """Charts and tiles of a page in the reader's language, as its script wants them."""
    shown = PANELS[name]
    return {
        "scope": shown.scope,
        "charts": [chart.spec() for chart in shown.charts],
        "tiles": [tile.spec() for tile in shown.tiles],
        "derived": sorted(derived(name)),
    }


def metrics(scope: str) -> frozenset[str]:
    """Every metric that pages of this scope show, but for those that are derived when asked."""
    drawn = {name for panel in PANELS.values() if panel.scope == scope for name in _drawn(panel)}
    return frozenset((drawn | {metric.name for metric in _BESIDES[scope]}) - set(DERIVED))


def derived(name: str) -> frozenset[str]:
    """What a page asks for separately: percentiles have their own distance in time."""
    return frozenset(_drawn(PANELS[name])) & frozenset(DERIVED)


def _drawn(panel: Panel) -> Iterator[str]:
    for chart in panel.charts:
        for line in chart.lines:
            yield line.metric.name
            if line.band:
                yield line.band.name
        if isinstance(chart.ceiling, Metric):
            yield chart.ceiling.name
    yield from (tile.metric.name for tile in panel.tiles)
