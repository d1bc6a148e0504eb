"""One node's agent: the link, the supervisor, the heads and the telemetry, wired together."""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.agent.heads import Heads
from engine.agent.link import Link
from engine.agent.supervisor import Supervisor
from engine.agent.telemetry import TelemetryLoop
from engine.drivers import DRIVERS
from engine.drivers.base import Driver
from engine.protocol.agent import Desired, FromAgent, Inventory, Observed

log = logging.getLogger(__name__)

OBSERVED_SECONDS = 5.0
LOG_SECONDS = 0.25


class NodeAgent:
    def __init__(
        self,
        server: str,
        token: str,
        inventory: Inventory,
        folder: Path,
        drivers: Mapping[str, Driver] = DRIVERS,
    ) -> None:
        self.wake = asyncio.Event()
        self.supervisor = Supervisor(self._processes_changed, drivers, folder)
        self.heads = Heads(self.supervisor, self._changed)
        self.telemetry = TelemetryLoop(self.supervisor, self.heads)
        self.link = Link(server, token, inventory, self)
        self._observed_due = 0.0
        self._logs_due = 0.0

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then every engine is ended in order, with the link still up.

        A part that fails raises out of here as an exception group; the engines wait for another
        agent. What one before this has left is taken over first, so that no report is without it.
        """
        await self.supervisor.adopt()
        await self.heads.greet()
        parts = (self.supervisor.run(), self.heads.run(), self.telemetry.run(), self.link.run())
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(part) for part in parts]
            await stop.wait()
            log.info("Stopping %d engine processes.", len(self.supervisor.processes))
            await self.supervisor.stop_all()
            for task in running:
                task.cancel()

    def connected(self) -> None:
        self.telemetry.outbox.connected()
        self._changed()

    def desired(self, state: Desired) -> None:
        self.supervisor.set_desired(state.generation, state.processes)

    def now(self) -> float:
        return time.time()

    def outgoing(self) -> Iterator[FromAgent]:
        self.wake.clear()
        now = time.monotonic()
        if now >= self._observed_due:
            self._observed_due = now + OBSERVED_SECONDS
            yield self.observed()
        if now >= self._logs_due:
            self._logs_due = now + LOG_SECONDS
            yield from self.supervisor.take_logs()
        yield from self.telemetry.outbox.outgoing()

    def observed(self) -> Observed:
        return Observed(
            generation=self.supervisor.generation,
            processes=self.supervisor.states(),
            engines=self.heads.stats(),
        )

    def _processes_changed(self) -> None:
        self.heads.hurry()
        self._changed()

    def _changed(self) -> None:
        self._observed_due = 0.0
        self.wake.set()
