"""Many made-up agents in one process, each over its own link."""

import asyncio
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from engine import VERSION
from engine.agent.clock import PanelClock
from engine.agent.link import Link
from engine.agent.outbox import Outbox
from engine.agent.simulation.firmware import simulated_parts
from engine.agent.simulation.signals import DEVICE_MEMORY, HOST_MEMORY, NodeSignals
from engine.protocol.agent import (
    Accelerator,
    Desired,
    Firmware,
    FromAgent,
    Inventory,
    Observed,
    Pong,
    Taken,
)

OBSERVED_SECONDS = 5.0
PERIOD_SECONDS = 1.0
HISTORY_READINGS = 3000


@dataclass(frozen=True)
class Plan:
    server: str
    devices: int
    seed: int
    faults_per_day: float
    history_seconds: float = 0.0
    """How far back each box begins to tell."""

    @property
    def history_step(self) -> float:
        """Seconds between two readings of the past: as many as an agent keeps."""
        return max(1.0, self.history_seconds / HISTORY_READINGS)


class SimulatedAgent:
    """One box: what it measures is made up, how it tells is an agent's way."""

    def __init__(self, number: int, name: str, token: str, plan: Plan) -> None:
        self.wake = asyncio.Event()
        self._signals = NodeSignals(plan.seed * 100_003 + number, plan.devices, plan.faults_per_day)
        self._clock = PanelClock()
        self._outbox = Outbox(self._clock)
        self._link = Link(plan.server, token, inventory(name, plan.devices), self)
        self._linked: asyncio.Task[None] | None = None
        self._generation = 0
        self._observed_due = 0.0
        self._firmware = Firmware(simulated_parts(number, plan.devices))
        self._firmware_told = False

    def connected(self) -> None:
        self._outbox.connected()
        self._observed_due = 0.0
        self._firmware_told = False
        self.wake.set()

    def outgoing(self) -> Iterator[FromAgent]:
        self.wake.clear()
        now = time.monotonic()
        if now >= self._observed_due:
            self._observed_due = now + OBSERVED_SECONDS
            yield Observed(generation=self._generation, processes=[])
        if not self._firmware_told:
            yield self._firmware
            self._firmware_told = True
        yield from self._outbox.outgoing()

    def desired(self, state: Desired) -> None:
        self._generation = state.generation
        self._observed_due = 0.0
        self.wake.set()

    def taken(self, message: Taken) -> None:
        self._outbox.taken(message.seqs)

    def pong(self, message: Pong) -> None:
        self._clock.hear(message)

    def now(self) -> float:
        return self._clock.local()

    def remember(self, since: float, until: float, step: float) -> None:
        """Tell of the past, as an agent does that was cut off."""
        moment = since
        while moment < until:
            if not self._signals.silent(moment):
                self._outbox.add(moment, self._signals.read(moment))
            moment += step

    async def tick(self) -> None:
        """One second: read and tell, or be the box that is off."""
        moment = time.time()
        if self._signals.silent(moment):
            await self.close()
            return
        if self._linked is None:
            self._linked = asyncio.create_task(self._run())
        samples = [*self._signals.read(moment), self._clock.sample()]
        self._outbox.add(self._clock.local(), samples)
        self.wake.set()

    async def _run(self) -> None:
        await self._link.run()

    async def close(self) -> None:
        linked, self._linked = self._linked, None
        if linked is not None:
            linked.cancel()
            with suppress(asyncio.CancelledError):
                await linked


async def simulate(plan: Plan, tokens: Sequence[tuple[str, str]], stop: asyncio.Event) -> None:
    """`tokens`: name and token of each box. Their seconds begin one after the other."""
    agents = [SimulatedAgent(i, name, token, plan) for i, (name, token) in enumerate(tokens)]
    now = time.time()
    for agent in agents:
        agent.remember(now - plan.history_seconds, now, plan.history_step)
    lives = [
        asyncio.create_task(_live(agent, index / len(agents), stop))
        for index, agent in enumerate(agents)
    ]
    await asyncio.gather(*lives)


async def _live(agent: SimulatedAgent, phase: float, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time() + phase
    try:
        while not stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await stop.wait()
            if not stop.is_set():
                await agent.tick()
            due = max(due + PERIOD_SECONDS, loop.time())
    finally:
        await agent.close()


def inventory(name: str, devices: int) -> Inventory:
    return Inventory(
        hostname=name,
        address="127.0.0.1",
        platform="simulated",
        cpu_model="Simulated 64-core processor",
        cpu_count=64,
        memory_bytes=int(HOST_MEMORY),
        python=platform.python_version(),
        engine_version=VERSION,
        accelerators=[
            Accelerator(
                index=index,
                vendor="nvidia",
                name="Simulated accelerator 80 GB",
                uuid=f"simulated-{name}-{index}",
                memory_bytes=int(DEVICE_MEMORY),
            )
            for index in range(devices)
        ],
        simulated=True,
    )
