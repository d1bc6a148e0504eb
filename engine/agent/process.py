"""One engine process from start to exit, as the control plane will hear of it."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Mapping

from engine.agent.child import Child, LineSplitter
from engine.agent.logs import LogBuffer
from engine.agent.reconcile import Life
from engine.drivers import driver_named
from engine.drivers.base import Driver, DriverError
from engine.errors import Part, Said, said, system_words
from engine.errors import gettext_noop as _
from engine.protocol.agent import ProcessState, ProcessStatus
from engine.protocol.launch import ProcessSpec

DRAIN_SECONDS = 1.0
"""How long the last words of an exited process are waited for."""


class EngineProcess:
    """Never restarted: one object, one try. `changed` is called on every change worth reporting."""

    def __init__(
        self, spec: ProcessSpec, drivers: Mapping[str, Driver], changed: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.log = LogBuffer()
        self.started_at = time.time()
        self.exited = asyncio.Event()
        self.status: ProcessStatus = "starting"
        self._drivers = drivers
        self._changed = changed
        self._child: Child | None = None
        self._stopping = False
        self._exit_code: int | None = None
        self._reason = Said()

    @property
    def life(self) -> Life:
        if self.exited.is_set():
            return "exited"
        return "stopping" if self._stopping else "alive"

    @property
    def driver(self) -> Driver:
        """Raises DriverError when this node has no such driver; then nothing was started."""
        return driver_named(self.spec.driver, self._drivers)

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def state(self) -> ProcessState:
        gone = self.exited.is_set()
        return ProcessState(
            key=self.spec.key,
            launch=self.spec.launch,
            role=self.spec.role,
            rank=self.spec.rank,
            status=self.status,
            pid=self.pid,
            exit_code=self._exit_code,
            asked=self._stopping,
            reason=self._reason,
            started_at=self.started_at,
            log_tail=self.log.tail if gone else [],
        )

    def start(self) -> None:
        """Fork; a process that cannot even start is an exited one with its reason."""
        try:
            self._child = Child.spawn(self.driver.command(self.spec))
        except (OSError, DriverError) as error:
            problem = error.said if isinstance(error, DriverError) else system_words(error)
            self._end(None, said(_("It could not be started: %(problem)s"), problem=problem))
            return
        if self.spec.role == "rank":
            self.status = "running"
        self._changed()

    def mark_ready(self) -> None:
        """The driver found this head answering."""
        if self.status == "starting":
            self.status = "running"
            self._changed()

    async def follow(self) -> None:
        """Collect its log until it exits, then say why it did."""
        if self._child is None:
            return
        reading = asyncio.create_task(self._read(self._child))
        try:
            code = await self._child.wait()
            self._child.signal_group(signal.SIGKILL)  # Whatever it left behind.
            await asyncio.wait({reading}, timeout=DRAIN_SECONDS)
        finally:
            reading.cancel()
        self._child.close()
        self._end(code, exit_reason(code, self._stopping, self.log.last))

    async def stop(self) -> None:
        """Ask, wait, insist; `exited` is set once it is gone."""
        if self._child is None or self._stopping:
            return
        self._stopping = True
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

    async def _read(self, child: Child) -> None:
        splitter = LineSplitter()
        async for chunk in child.output():
            self._keep(splitter.feed(chunk))
        self._keep(splitter.end())

    def _keep(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.log.append(line.replace(self.spec.token, "***") if self.spec.token else line)

    def _end(self, code: int | None, reason: Said) -> None:
        self.status, self._exit_code, self._reason = "exited", code, reason
        self.exited.set()
        self._changed()


def exit_reason(code: int, asked: bool, last_line: str) -> Said:
    """One sentence; the last log line is added where it is likely to be the cause."""
    if code < 0:
        return _killed(-code, asked, last_line)
    if asked:
        return said(_("Stopped as asked (exit code %(code)s)."), code=code)
    if code == 0:
        return said(_("It ended by itself (exit code 0)."))
    if last_line:
        return said(_("It exited with code %(code)s: %(words)s"), code=code, words=last_line)
    return said(_("It exited with code %(code)s."), code=code)


def _killed(number: int, asked: bool, last_line: str) -> Said:
    parts: dict[str, Part] = {"number": number, "name": signal_name(number)}
    if asked:
        return Said(_("Stopped as asked: killed by signal %(number)s (%(name)s)."), parts)
    if number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT) or not last_line:
        return Said(_("It was killed by signal %(number)s (%(name)s)."), parts)
    parts["words"] = last_line
    return Said(_("It was killed by signal %(number)s (%(name)s): %(words)s"), parts)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
