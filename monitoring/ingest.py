"""Telemetry frames from agents: checked, stored in batches, then shown to whoever is looking."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.utils import timezone

from monitoring.frames import Frame, Layouts
from monitoring.live import publish
from monitoring.packing import Layout, Numbers
from monitoring.store import store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ingested:
    stored: int
    """Rows written; 0 when the frame was there already or was refused."""
    refused: list[str]
    """What of the frame was not taken, one sentence each."""


class Writer:
    """Stores frames in batches without making any wait: those that arrive while a batch is being
    written make up the next one."""

    def __init__(self) -> None:
        self._pending: list[Frame] = []
        self._turn = asyncio.Lock()

    async def write(self, frame: Frame) -> None:
        """Returns when the frame is stored; raises django.db.DatabaseError when it cannot be."""
        self._pending.append(frame)
        try:
            async with self._turn:
                if frame.stored is None:
                    await database_sync_to_async(store)(tuple(self._pending))
        finally:
            self._pending = [f for f in self._pending if f is not frame and f.stored is None]


_writers: WeakKeyDictionary[asyncio.AbstractEventLoop, Writer] = WeakKeyDictionary()


async def ingest(
    node_id: int,
    layouts: Layouts,
    seq: int,
    at: float,
    told: Sequence[Layout],
    readings: Sequence[tuple[int, Numbers]],
) -> Ingested:
    """Take one frame of a node. Sending the same frame again changes nothing.

    `at` is in Unix seconds on the panel's clock; `layouts` is what the connection has told so far.
    A value that is not finite, or negative where that cannot be, is kept as absent with its reason;
    a malformed name is left out and reported. Raises django.db.DatabaseError when Postgres cannot
    be used; a channel layer that is down is no error.
    """
    refused = layouts.learn(told)
    frame = layouts.frame(node_id, seq, at, readings, timezone.now())
    frame.refused[:0] = refused
    if frame.readings:
        await _writer().write(frame)
    if frame.refused:
        log.warning("telemetry of node %s: %s", node_id, " ".join(frame.refused[:5]))
    if frame.stored:
        await publish(frame)
    return Ingested(frame.stored or 0, frame.refused)


def _writer() -> Writer:
    return _writers.setdefault(asyncio.get_running_loop(), Writer())
