"""Keeps the node's processes as the last desired state says. One per agent."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.agent.adoption import find_left_behind
from engine.agent.home import Home
from engine.agent.process import EngineProcess
from engine.agent.reconcile import Forget, Seen, Start, Stop, reconcile
from engine.agent.spares import Spares
from engine.agent.watch import Watch
from engine.drivers.base import Driver
from engine.protocol.agent import LogLines, ProcessState
from engine.protocol.launch import ProcessSpec

log = logging.getLogger(__name__)

LAST_SECONDS = 3.0
"""After the kill: how long the kernel may take to end a process before it is given up."""


class Supervisor:
    """`changed` is called on every change worth reporting, from the event loop. What must outlive
    this agent is under `folder`."""

    def __init__(
        self, changed: Callable[[], None], drivers: Mapping[str, Driver], folder: Path
    ) -> None:
        self.generation = 0
        """The desired state that has been acted on; 0 before the first."""
        self.processes: dict[str, EngineProcess] = {}
        self.spares = Spares(self.processes)
        self._report = changed
        self._home = Home(folder, drivers, self._changed)
        self._desired: tuple[int, Sequence[ProcessSpec]] | None = None
        """None until it is known: nothing that was found running is stopped before."""
        self._closing = False
        self._wake = asyncio.Event()
        self._watch = Watch(self.processes, self.spares)

    def set_environment(self, variables: Mapping[str, str]) -> None:
        """For what starts from now on; spares have the old one."""
        if self._home.environment.set(variables):
            for process in self.processes.values():
                process.drop_spare()

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

    async def adopt(self) -> None:
        """Take over what an agent before this one has left; call it before `run`."""
        for process in await find_left_behind(self._home):
            self.processes[process.spec.key] = process

    async def run(self) -> None:
        """Reconcile for ever. However it ends, engines are left to another agent: `stop_all`
        first when there will be none."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for process in self.processes.values():
                    tasks.create_task(self._follow(process))
                tasks.create_task(self.spares.run())
                tasks.create_task(self._watch.run())
                while True:
                    self._reconcile(tasks)
                    await self._wake.wait()
                    self._wake.clear()
        finally:
            for process in self.processes.values():
                process.let_go()

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
        for process in living:
            if process.child and not process.exited.is_set():
                process.child.kill()

    def _reconcile(self, tasks: asyncio.TaskGroup) -> None:
        if self._desired is None:
            return
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
        process = EngineProcess(spec, self._home)
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
