"""One node's agent: the link, the supervisor, the heads and the telemetry, wired together."""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from engine.agent.firmware.desk import FirmwareDesk, NodeFirmware
from engine.agent.firmware.orders import Orders
from engine.agent.heads import Heads
from engine.agent.inventory import as_told
from engine.agent.kernel_log import KernelLog
from engine.agent.limits.keeper import LimitKeeper
from engine.agent.link import Link
from engine.agent.own_log import OwnLog
from engine.agent.probes import NodeProbes
from engine.agent.supervisor import Supervisor
from engine.agent.telemetry import TelemetryLoop
from engine.drivers import DRIVERS
from engine.drivers.base import Driver
from engine.protocol.agent import Desired, FromAgent, Inventory, Observed, Pong, Taken

log = logging.getLogger(__name__)

OBSERVED_SECONDS = 5.0
LOG_SECONDS = 0.25
DEVICES_SECONDS = 2.0


class NodeAgent:
    def __init__(
        self,
        server: str,
        token: str,
        inventory: Inventory,
        folder: Path,
        drivers: Mapping[str, Driver] = DRIVERS,
        probes: NodeProbes | None = None,
        *,
        allow_reboot: bool = False,
    ) -> None:
        self.wake = asyncio.Event()
        self.supervisor = Supervisor(self._processes_changed, drivers, folder)
        self.heads = Heads(self.supervisor, self._changed)
        self.probes = probes or NodeProbes(folder)
        self.telemetry = TelemetryLoop(self.supervisor, self.heads, self.wake.set, self.probes)
        self.kernel_log = KernelLog(self.probes.xids)
        self._inventory = inventory
        self.link = Link(server, token, inventory, self)
        self.own_log = OwnLog()
        self.firmware = FirmwareDesk(
            NodeFirmware(self.probes.roots, lambda: self.probes.accelerators.devices), self.wake.set
        )
        self.orders = Orders(
            folder,
            server,
            token,
            self._changed,
            ended=self.firmware.look_again,
            boot_id=inventory.boot_id,
            allow_reboot=allow_reboot,
        )
        self.limits = LimitKeeper(folder, self.heads, inventory.accelerators, self._changed)
        self._observed_due = 0.0
        self._logs_due = 0.0

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then every engine is ended in order, with the link still up.

        A part that fails raises out of here as an exception group; the engines wait for another
        agent. What one before this has left is taken over first, so that no report is without it.
        """
        logging.getLogger().addHandler(self.own_log)
        self.kernel_log.open()
        try:
            await self._live(stop)
        finally:
            self.kernel_log.close()
            logging.getLogger().removeHandler(self.own_log)

    async def _live(self, stop: asyncio.Event) -> None:
        await self.supervisor.adopt()
        await self.heads.greet()
        parts = (
            self.supervisor.run(),
            self.heads.run(),
            self.telemetry.run(),
            self.link.run(),
            self.limits.run(),
            self._follow_devices(),
            self.firmware.run(),
            self.orders.run(),
        )
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(part) for part in parts]
            await stop.wait()
            log.info("Stopping %d engine processes.", len(self.supervisor.processes))
            await self.supervisor.stop_all()
            for task in running:
                task.cancel()
        await self.limits.release()

    async def _follow_devices(self) -> NoReturn:
        """A driver may be loaded after the agent was started, or be replaced under it."""
        while True:
            await asyncio.sleep(DEVICES_SECONDS)
            found = [as_told(device) for device in self.probes.accelerators.devices]
            if found and found != self._inventory.accelerators:
                self._inventory = msgspec.structs.replace(self._inventory, accelerators=found)
                self.limits.follow(found)
                self.link.introduce(self._inventory)

    def connected(self) -> None:
        self.telemetry.outbox.connected()
        self.firmware.connected()
        self._changed()

    def desired(self, state: Desired) -> None:
        self.supervisor.set_environment(state.environment)
        self.supervisor.set_desired(state.generation, state.processes)
        self.telemetry.sources.set(state.sources)
        self.probes.links.watch(state.watch)
        self.limits.set_wanted(state.limits)
        self.orders.set_wanted(state.orders)

    def taken(self, message: Taken) -> None:
        self.telemetry.outbox.taken(message.seqs)

    def pong(self, message: Pong) -> None:
        self.telemetry.clock.hear(message)

    def now(self) -> float:
        return self.telemetry.clock.local()

    def outgoing(self) -> Iterator[FromAgent]:
        self.wake.clear()
        now = time.monotonic()
        if now >= self._observed_due:
            self._observed_due = now + OBSERVED_SECONDS
            yield self.observed()
        if now >= self._logs_due:
            self._logs_due = now + LOG_SECONDS
            yield from self.supervisor.take_logs()
            yield from self.own_log.take()
            yield from self.kernel_log.take()
        yield from self.firmware.outgoing()
        yield from self.telemetry.outbox.outgoing()

    def observed(self) -> Observed:
        return Observed(
            generation=self.supervisor.generation,
            processes=self.supervisor.states(),
            engines=self.heads.stats(),
            limits=self.limits.states(),
            orders=self.orders.states(),
        )

    def _processes_changed(self) -> None:
        self.heads.hurry()
        self._changed()

    def _changed(self) -> None:
        self._observed_due = 0.0
        self.wake.set()
