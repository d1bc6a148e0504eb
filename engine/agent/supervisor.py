"""Keeps the node's processes as the last desired state says. One per agent."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from engine.agent.process import EngineProcess
from engine.agent.reconcile import Forget, Seen, Start, Stop, reconcile
from engine.drivers import DRIVERS
from engine.drivers.base import Driver
from engine.protocol.agent import LogLines, ProcessState
from engine.protocol.launch import ProcessSpec

log = logging.getLogger(__name__)

LAST_SECONDS = 3.0
"""After the kill: how long the kernel may take to end a process before it is given up."""


class Supervisor:
    """`changed` is called on every change worth reporting, from the event loop."""

    def __init__(
        self, changed: Callable[[], None], drivers: Mapping[str, Driver] = DRIVERS
    ) -> None:
        self.generation = 0
        """The desired state that has been acted on; 0 before the first."""
        self.processes: dict[str, EngineProcess] = {}
        self._report = changed
        self._drivers = drivers
        self._desired: tuple[int, Sequence[ProcessSpec]] = (0, ())
        self._closing = False
        self._wake = asyncio.Event()

    def set_desired(self, generation: int, specs: Sequence[ProcessSpec]) -> None:
        """Not heeded any more once everything is being stopped."""
        if not self._closing:
            self._desired = (generation, specs)
            self._wake.set()

    def states(self) -> list[ProcessState]:
        return [process.state() for process in self.processes.values()]

    def take_logs(self) -> list[LogLines]:
        batches = (
            LogLines(key=key, launch=process.spec.launch, lines=process.log.take())
            for key, process in self.processes.items()
        )
        return [batch for batch in batches if batch.lines]

    async def run(self) -> None:
        """Reconcile for ever. However it ends, no process is left behind."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._reconcile(tasks)
                    await self._wake.wait()
                    self._wake.clear()
        finally:
            for process in self.processes.values():
                process.kill()

    async def stop_all(self) -> None:
        """Bring every process to an orderly end; `run` must still be running."""
        self.set_desired(self.generation, ())
        self._closing = True
        living = [process for process in self.processes.values() if process.life != "exited"]
        if not living:
            return
        patience = max(process.driver.stop_seconds for process in living) + LAST_SECONDS
        ends = [asyncio.create_task(process.exited.wait()) for process in living]
        _, late = await asyncio.wait(ends, timeout=patience)
        for end in late:
            end.cancel()

    def _reconcile(self, tasks: asyncio.TaskGroup) -> None:
        generation, specs = self._desired
        seen = [Seen(key, process.life) for key, process in self.processes.items()]
        for action in reconcile(specs, seen):
            match action:
                case Start(spec):
                    self._start(spec, tasks)
                case Stop(key):
                    log.info("Stopping %s.", key)
                    tasks.create_task(self.processes[key].stop())
                case Forget(key):
                    del self.processes[key]
                    self._changed()
        if generation != self.generation:
            self.generation = generation
            self._report()

    def _start(self, spec: ProcessSpec, tasks: asyncio.TaskGroup) -> None:
        process = EngineProcess(spec, self._drivers, self._changed)
        self.processes[spec.key] = process
        log.info("Starting %s.", spec.key)
        tasks.create_task(self._follow(process))

    async def _follow(self, process: EngineProcess) -> None:
        await process.live()
        log.info("%s: %s", process.spec.key, process.state().reason)

    def _changed(self) -> None:
        """An exit may make room for a start, so every change is looked at again."""
        self._wake.set()
        self._report()
