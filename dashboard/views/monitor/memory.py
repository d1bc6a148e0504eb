"""The memory bars of boxes: their newest readings, given to `monitoring.charts.memory`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from dashboard.models import Node, Rank
from engine.protocol.agent import Accelerator
from monitoring import metrics as m
from monitoring.charts.memory import (
    UNKNOWN,
    Amount,
    Bar,
    Device,
    Held,
    Host,
    device_bar,
    host_bar,
    unknown,
)
from monitoring.samples import Kind
from monitoring.scopes import Subject
from monitoring.storage.series import Series, history

PARTS: dict[str, str | Promise] = {
    "weights": _("weights"),
    "kv": _("KV cache"),
    "runtime": _("runtime"),
    "undivided": _("in use, not told apart"),
    "other": _("other"),
    "page_cache": _("page cache"),
    "free": _("free"),
    "floor": _("floor"),
}
METRICS = frozenset(
    metric.name
    for metric in (
        m.MEMORY_TOTAL,
        m.MEMORY_AVAILABLE,
        m.MEMORY_PAGE_CACHE,
        m.MEMORY_FLOOR,
        m.GPU_MEMORY_TOTAL,
        m.GPU_MEMORY_USED,
        m.RANK_WEIGHTS,
        m.RANK_KV,
        m.PROCESS_MEMORY,
    )
)
LOADING = gettext_noop("Known once the rank has loaded.")
NOT_TOLD = gettext_noop("The driver does not say what a process holds on the accelerator.")


@dataclass(frozen=True)
class ShownPart:
    name: str
    label: str
    amount: Amount
    percent: float


@dataclass(frozen=True)
class ShownBar:
    where: str
    total: Amount
    parts: list[ShownPart]


@dataclass(frozen=True)
class BoxMemory:
    node: Node
    bars: list[ShownBar]


Readings = dict[tuple[str, str], Amount]
"""(topic, metric) -> the newest."""


def box_memory(nodes: Sequence[Node], since: datetime, until: datetime) -> list[BoxMemory]:
    readings = _readings(nodes, since, until)
    return [BoxMemory(node, list(_bars(node, readings))) for node in nodes]


def _bars(node: Node, readings: Readings) -> Iterable[ShownBar]:
    hardware = node.hardware
    accelerators = hardware.accelerators if hardware else []
    ranks = _ranks(node)
    own = [device for device in accelerators if not device.unified]
    # The embedded engine computes on the processor, whatever else is in the box.
    inside = [rank for rank in ranks if not own or _on_processor(rank)]
    outside = [rank for rank in ranks if rank not in inside]
    host = host_bar(_host(node, readings), [_held(rank, readings) for rank in inside])
    unified = len(own) < len(accelerators)
    yield _shown(str(_("Unified memory") if unified else _("Memory")), host)
    if own:
        devices = [_device(node, device, readings) for device in own]
        held = [_held_outside(rank, readings) for rank in outside]
        yield _shown(str(_("Accelerator memory")), device_bar(devices, held))


def _shown(where: str, bar: Bar) -> ShownBar:
    parts = [
        ShownPart(part.name, str(PARTS[part.name]), part.amount, round(part.share * 100, 3))
        for part in bar.parts
    ]
    return ShownBar(where, bar.total, parts)


def _ranks(node: Node) -> list[Rank]:
    return list(cast("Iterable[Rank]", getattr(node, "live_ranks", [])))


def _on_processor(rank: Rank) -> bool:
    return rank.replica.deployment.driver == "embedded"


def _host(node: Node, readings: Readings) -> Host:
    topic = f"{node.pk}/node"
    declared = Amount(node.memory_floor_mb * 2.0**20, "declared", "panel: settings")
    return Host(
        readings.get((topic, m.MEMORY_TOTAL.name), UNKNOWN),
        readings.get((topic, m.MEMORY_AVAILABLE.name), UNKNOWN),
        readings.get((topic, m.MEMORY_PAGE_CACHE.name), UNKNOWN),
        readings.get((topic, m.MEMORY_FLOOR.name), declared),
    )


def _device(node: Node, device: Accelerator, readings: Readings) -> Device:
    topic = f"{node.pk}/gpu:{device.index}"
    return Device(
        readings.get((topic, m.GPU_MEMORY_TOTAL.name), UNKNOWN),
        readings.get((topic, m.GPU_MEMORY_USED.name), UNKNOWN),
    )


def _held(rank: Rank, readings: Readings) -> Held:
    topic = _topic(rank)
    weights = readings.get((topic, m.RANK_WEIGHTS.name)) or _reported(rank.weight_bytes)
    kv = readings.get((topic, m.RANK_KV.name)) or _reported(rank.kv_bytes)
    return Held(weights, kv, readings.get((topic, m.PROCESS_MEMORY.name), UNKNOWN))


def _held_outside(rank: Rank, readings: Readings) -> Held:
    held = _held(rank, readings)
    return Held(held.weights, held.kv, unknown(NOT_TOLD))


def _reported(number: int | None) -> Amount:
    return unknown(LOADING) if number is None else Amount(float(number), "measured", "engine head")


def _topic(rank: Rank) -> str:
    return f"launch:{rank.replica.launch}:rank{rank.rank}"


def _readings(nodes: Sequence[Node], since: datetime, until: datetime) -> Readings:
    found: Readings = {}
    for series in history(list(_subjects(nodes)), METRICS, since, until, 100).series:
        amount = _newest(series)
        known = found.get((series.topic, series.metric))
        if known is None or not known.known:
            found[series.topic, series.metric] = amount
    return found


def _newest(series: Series) -> Amount:
    """Several sources may speak of one subject, so the last row need not hold its value."""
    if series.reason:
        return unknown(gettext(series.reason))
    number = next((value for value in reversed(series.value) if value is not None), None)
    if number is None:
        return UNKNOWN
    return Amount(number, cast(Kind, series.kind), series.source)


def _subjects(nodes: Sequence[Node]) -> Iterable[Subject]:
    for node in nodes:
        yield Subject("node", node.name, node=node.pk, node_name=node.name)
        hardware = node.hardware
        for device in hardware.accelerators if hardware else []:
            yield Subject(f"gpu:{device.index}", device.name, node=node.pk, node_name=node.name)
        for rank in _ranks(node):
            yield Subject(_topic(rank), "", node_name=node.name, rank=str(rank.rank))
