"""Monitor, now: the boxes side by side, what their memory holds and what each rank is at."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from channels.db import database_sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone

from dashboard.models import Node, Replica
from dashboard.views.access import hidden_of
from dashboard.views.engine import HeadNow, ask_head
from dashboard.views.live import PRIMARIES_FIRST, live_ranks
from dashboard.views.monitor.memory import BoxMemory, box_memory
from engine.protocol.agent import Accelerator
from monitoring.charts import panels as charts

MOST_BOXES = 16
"""More than these are a grid: a row each would be a wall."""
FRESH = timedelta(seconds=15)


@dataclass(frozen=True)
class Device:
    """An accelerator with the topic of its readings."""

    topic: str
    index: int
    name: str
    unified: bool
    memory_bytes: int | None


@dataclass(frozen=True)
class Box:
    """A node as this page shows it."""

    node: Node
    accelerators: list[Accelerator] = field(default_factory=list)
    simulated: bool = False
    memory_bytes: int | None = None

    @property
    def topic(self) -> str:
        return f"{self.node.pk}/node"

    @property
    def devices(self) -> list[Device]:
        return [
            Device(f"{self.node.pk}/gpu:{a.index}", a.index, a.name, a.unified, a.memory_bytes)
            for a in self.accelerators
        ]


@dataclass(frozen=True)
class Running:
    """A replica with its head's words, under the name of its deployment."""

    deployment: str
    several: bool
    head: HeadNow


@login_required
def monitor(request: HttpRequest) -> HttpResponse:
    hidden = hidden_of(request)
    nodes = Node.objects.exclude(pk__in=hidden.nodes)
    boxes = [_box(node) for node in nodes.prefetch_related(live_ranks(hidden))]
    large = len(boxes) > MOST_BOXES
    return render(
        request,
        "monitor/now.html",
        {
            "boxes": boxes,
            "large": large,
            "simulated": any(box.simulated for box in boxes),
            "grid": _grid(boxes) if large else None,
            "grid_metrics": charts.grid() if large else [],
        },
    )


@login_required
async def monitor_state(request: HttpRequest) -> HttpResponse:
    """The part of the page that is asked for again every few seconds."""
    boxes, replicas = await database_sync_to_async(_state)(request)
    heads = await asyncio.gather(*(ask_head(replica, nodes) for replica, nodes in replicas))
    names = [replica.deployment.name for replica, _nodes in replicas]
    running = [
        Running(name, names.count(name) > 1, head) for name, head in zip(names, heads, strict=True)
    ]
    page: HttpResponse = await database_sync_to_async(render)(
        request, "monitor/_state.html", {"boxes": boxes, "running": running}
    )
    return page


def _box(node: Node) -> Box:
    hardware = node.hardware
    if hardware is None:
        return Box(node)
    return Box(node, hardware.accelerators, hardware.simulated, hardware.memory_bytes)


def _grid(boxes: Sequence[Box]) -> list[dict[str, object]]:
    """What the grid's script knows of each node before the first numbers come."""
    return [
        {
            "pk": box.node.pk,
            "name": box.node.name,
            "url": reverse("node-detail", args=[box.node.name]),
            "devices": len(box.accelerators),
            "online": box.node.status == "online",
        }
        for box in boxes
    ]


def _state(request: HttpRequest) -> tuple[list[BoxMemory], list[tuple[Replica, dict[int, str]]]]:
    """Of a large fleet the boxes that have work: nobody reads two hundred bars."""
    hidden = hidden_of(request)
    shown = Node.objects.exclude(pk__in=hidden.nodes)
    nodes = list(shown.prefetch_related(live_ranks(hidden)))
    if len(nodes) > MOST_BOXES:
        busy = (node for node in nodes if node.live_ranks)  # type: ignore[attr-defined]  # prefetched
        nodes = list(busy)[:MOST_BOXES]
    rows = Replica.objects.filter(ended_at=None).select_related("deployment")
    rows = rows.exclude(deployment__in=hidden.deployments)
    rows = rows.prefetch_related("ranks__node").order_by("deployment__name", *PRIMARIES_FIRST)
    replicas = [
        (replica, {rank.rank: rank.node.name for rank in replica.ranks.all()})
        for replica in rows[:MOST_BOXES]
    ]
    until = timezone.now()
    return box_memory(nodes, until - FRESH, until), replicas


urlpatterns = [
    path("", monitor, name="monitor"),
    path("state/", monitor_state, name="monitor-state"),
]
