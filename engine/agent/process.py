"""One desired process through all its lives, as the control plane will hear of it."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterable, Mapping

from engine.agent.child import Child, LineSplitter
from engine.agent.endings import exit_reason
from engine.agent.logs import LogBuffer
from engine.agent.reconcile import Life
from engine.agent.restart import STEADY_SECONDS, judge_end
from engine.drivers import driver_named
from engine.drivers.base import Driver, DriverError
from engine.errors import Said, said, system_words
from engine.errors import gettext_noop as _
from engine.protocol.agent import ProcessState, ProcessStatus
from engine.protocol.launch import ProcessSpec

DRAIN_SECONDS = 1.0
"""How long the last words of an exited process are waited for."""


class EngineProcess:
    """Started again when it ends unasked, as `judge_end` says. `changed` is called on every change
    worth reporting."""

    def __init__(
        self, spec: ProcessSpec, drivers: Mapping[str, Driver], changed: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.log = LogBuffer()
        self.restarts = 0
        self.started_at = time.time()
        self.exited = asyncio.Event()
        """It has ended for good."""
        self.status: ProcessStatus = "starting"
        self._drivers = drivers
        self._changed = changed
        self._child: Child | None = None
        self._stop_asked = asyncio.Event()
        self._failures = 0
        self._exit_code: int | None = None
        self._reason = Said()

    @property
    def life(self) -> Life:
        if self.exited.is_set():
            return "exited"
        return "stopping" if self._stop_asked.is_set() else "alive"

    @property
    def driver(self) -> Driver:
        """Raises DriverError when this node has no such driver; then nothing was started."""
        return driver_named(self.spec.driver, self._drivers)

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def state(self) -> ProcessState:
        gone = self.exited.is_set()
        steady = not gone and time.time() - self.started_at > STEADY_SECONDS
        return ProcessState(
            key=self.spec.key,
            launch=self.spec.launch,
            role=self.spec.role,
            rank=self.spec.rank,
            status=self.status,
            pid=self.pid,
            exit_code=None if steady else self._exit_code,
            restarts=self.restarts,
            asked=self._stop_asked.is_set(),
            reason=Said() if steady else self._reason,
            started_at=self.started_at,
            log_tail=self.log.tail if gone else [],
        )

    def mark_ready(self) -> None:
        """The driver found this head answering."""
        if self.status == "starting" and self._child is not None:
            self.status = "running"
            self._changed()

    async def live(self) -> None:
        """From the first start to the end that is final."""
        while not self._stop_asked.is_set():
            began = time.monotonic()
            try:
                code = await self._live_once()
            except DriverError as error:
                self._note_end(None, _not_started(error.said))
                break
            verdict = judge_end(self._failures, code, time.monotonic() - began)
            self._failures = verdict.failures
            if verdict.delay is None or self._stop_asked.is_set():
                break
            await self._pause(verdict.delay)
        self.status = "exited"
        self.exited.set()
        self._changed()

    async def stop(self) -> None:
        """Ask, wait, insist; `exited` is set once it is gone."""
        if self._stop_asked.is_set():
            return
        self._stop_asked.set()
        if self._child is None:
            return
        self._child.signal_group(self.driver.stop_signal)
        try:
            await asyncio.wait_for(self.exited.wait(), self.driver.stop_seconds)
        except TimeoutError:
            self.log.append(f"(still running after {self.driver.stop_seconds:g} s: killed)")
            self._child.signal_group(signal.SIGKILL)

    def kill(self) -> None:
        """The agent itself is going down: no event loop to wait with."""
        if self._child and not self.exited.is_set():
            self._child.kill()

    async def _live_once(self) -> int | None:
        """Exit code; None when it could not be started. Raises DriverError."""
        command = self.driver.command(self.spec)
        self.started_at = time.time()
        try:
            child = Child.spawn(command)
        except OSError as error:
            self._note_end(None, _not_started(system_words(error)))
            return None
        self._child = child
        self.status = "running" if self.spec.role == "rank" else "starting"
        self._changed()
        code = await self._collect(child)
        self._note_end(code, exit_reason(code, self._stop_asked.is_set(), self.log.last))
        return code

    async def _collect(self, child: Child) -> int:
        """Its log until it exits, and its exit code."""
        reading = asyncio.create_task(self._read(child))
        try:
            code = await child.wait()
            child.signal_group(signal.SIGKILL)  # Whatever it left behind.
            await asyncio.wait({reading}, timeout=DRAIN_SECONDS)
        finally:
            reading.cancel()
        child.close()
        return code

    async def _pause(self, seconds: float) -> None:
        """Until it is due again, or not wanted any more."""
        self.restarts += 1
        self._child, self.status = None, "starting"
        self.log.append(f"({self._reason} Starting it again in {seconds:g} s.)")
        self._changed()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop_asked.wait(), seconds)

    async def _read(self, child: Child) -> None:
        splitter = LineSplitter()
        async for chunk in child.output():
            self._keep(splitter.feed(chunk))
        self._keep(splitter.end())

    def _keep(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.log.append(line.replace(self.spec.token, "***") if self.spec.token else line)

    def _note_end(self, code: int | None, reason: Said) -> None:
        self._exit_code, self._reason = code, reason


def _not_started(problem: Said) -> Said:
    return said(_("It could not be started: %(problem)s"), problem=problem)
