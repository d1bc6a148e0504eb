"""A supervisor at work, and what it reports."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from engine.agent.supervisor import Supervisor
from engine.protocol.agent import ProcessState
from engine.protocol.launch import ProcessSpec
from tests.engine.agents import ScriptDriver, until


class Bench:
    """A running supervisor."""

    running: asyncio.Task[None]

    def __init__(self, folder: Path) -> None:
        self.driver = ScriptDriver()
        self.told: Callable[[], object] = lambda: None
        """Called on every change that the supervisor reports."""
        self.supervisor = Supervisor(self._changed, {"script": self.driver}, folder)

    def _changed(self) -> None:
        self.told()

    def ask(self, *specs: ProcessSpec) -> None:
        self.supervisor.set_desired(self.supervisor.generation + 1, specs)

    def state(self, key: str = "l1:rank0") -> ProcessState:
        return self.supervisor.processes[key].state()

    def log(self, key: str = "l1:rank0") -> list[str]:
        return self.supervisor.processes[key].log.tail

    async def started(self, spec: ProcessSpec, word: str = "serving") -> int:
        """Ask for it, wait until it has printed `word`, and give its pid."""
        self.ask(spec)
        await until(lambda: spec.key in self.supervisor.processes, "a start")
        await until(lambda: word in self.log(spec.key), word)
        pid = self.state(spec.key).pid
        assert pid is not None
        return pid

    async def ended(self, key: str = "l1:rank0") -> ProcessState:
        """After its first end, whether or not it is started again."""
        processes = self.supervisor.processes
        await until(lambda: key in processes and bool(self.state(key).reason), "an end")
        return self.state(key)

    async def exited(self, key: str = "l1:rank0") -> ProcessState:
        """After its last end."""
        processes = self.supervisor.processes
        await until(lambda: key in processes and processes[key].exited.is_set(), "an exit")
        return self.state(key)


@contextlib.asynccontextmanager
async def agent_bench(folder: Path) -> AsyncIterator[Bench]:
    """Afterwards nothing is left of what it started."""
    bench = Bench(folder)
    await bench.supervisor.adopt()
    bench.running = asyncio.create_task(bench.supervisor.run())
    yield bench
    bench.driver.stop_seconds = 0.2
    if not bench.running.done():
        await bench.supervisor.stop_all()
    bench.running.cancel()
    await asyncio.wait({bench.running})
