"""Telemetry frames from agents: checked, shown to whoever is looking, and stored in batches."""

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from monitoring.live.desk import publish
from monitoring.live.frames import Frame, Layouts
from monitoring.live.writer import writer
from monitoring.packing import Layout, Numbers

log = logging.getLogger(__name__)

LIVE = timedelta(seconds=10)
"""What is older than that when it arrives is past: stored behind the rest and not shown live."""
WARN_EVERY_SECONDS = 60.0


class Intake:
    """What one connection of an agent brings. Nothing here waits for the database, so a slow one
    keeps no heartbeat waiting; what cannot be kept is not taken, and the agent sends it again."""

    def __init__(self, node: int) -> None:
        self._node = node
        self._layouts = Layouts()
        self._taken: list[int] = []
        self._any = asyncio.Event()
        self._warned = -WARN_EVERY_SECONDS

    def take(
        self, seq: int, at: float, told: Sequence[Layout], readings: Sequence[tuple[int, Numbers]]
    ) -> Frame:
        """Sending the same frame again changes nothing. `at`: Unix seconds on the panel's clock.

        A value that is not finite, or negative where that cannot be, is kept as absent with its
        reason; a malformed name is left out and reported.
        """
        arrived = timezone.now()
        refused = self._layouts.learn(told)
        frame = self._layouts.frame(self._node, seq, at, readings, arrived)
        frame.refused[:0] = refused
        if frame.refused:
            self._warn(frame.refused)
        if frame.readings:
            live = arrived - frame.at <= LIVE
            if live:
                publish(frame)
            writer().put(frame, self.settled, live=live)
        else:
            self.settled([frame])
        return frame

    def settled(self, frames: Sequence[Frame]) -> None:
        """They are stored, or refused for good."""
        self._taken += [frame.seq for frame in frames]
        self._any.set()

    async def taken(self) -> list[int]:
        """The numbers of what was settled since the last call; waits for the first."""
        await self._any.wait()
        self._any.clear()
        taken, self._taken = self._taken, []
        return taken

    def _warn(self, refused: Sequence[str]) -> None:
        now = time.monotonic()
        if now - self._warned >= WARN_EVERY_SECONDS:
            self._warned = now
            log.warning("telemetry of node %s: %s", self._node, " ".join(refused[:5]))
