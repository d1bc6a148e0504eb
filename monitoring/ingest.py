"""Telemetry frames from agents: checked, stored in batches, then shown to whoever is looking."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.utils import timezone

from monitoring.frames import Frame, check_frame
from monitoring.live import publish
from monitoring.samples import Sample
from monitoring.store import store

log = logging.getLogger(__name__)

SKEW_LIMIT_SECONDS = 5.0
"""Beyond this a node's clock is noted: its readings land elsewhere on the time axis."""


@dataclass(frozen=True)
class Ingested:
    stored: int
    """Rows written; 0 when the frame was there already or was refused."""
    skew_seconds: float | None
    """Set when the node's clock is off by more than the limit (or the frame came late)."""
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
_skewed: set[int] = set()


async def ingest(node_id: int, seq: int, at: float, samples: Sequence[Sample]) -> Ingested:
    """Take one frame of a node. Sending the same frame again changes nothing.

    `at` is in Unix seconds on the node's clock. A value that is not finite, or negative where that
    cannot be, is kept as absent with its reason; a malformed name is left out and reported. Raises
    django.db.DatabaseError when Postgres cannot be used; a channel layer that is down is no error.
    """
    arrived = timezone.now()
    frame = check_frame(node_id, seq, at, samples, arrived)
    if frame.readings:
        await _writer().write(frame)
    if frame.refused:
        log.warning("telemetry of node %s: %s", node_id, " ".join(frame.refused[:5]))
    if frame.stored:
        await publish(frame)
    skew = (arrived - frame.at).total_seconds()
    return Ingested(frame.stored or 0, _note_skew(node_id, skew), frame.refused)


def _writer() -> Writer:
    return _writers.setdefault(asyncio.get_running_loop(), Writer())


def _note_skew(node_id: int, skew: float) -> float | None:
    """Log a clock that goes astray once, and once when it is back."""
    if abs(skew) <= SKEW_LIMIT_SECONDS:
        if node_id in _skewed:
            _skewed.discard(node_id)
            log.info("the clock of node %s agrees with this one again", node_id)
        return None
    if node_id not in _skewed:
        _skewed.add(node_id)
        log.warning("the clock of node %s differs from this one by %.1f s", node_id, skew)
    return skew
