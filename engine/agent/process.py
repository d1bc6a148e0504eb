"""One desired process through all its lives, as the control plane will hear of it."""

import asyncio
import contextlib
import logging
import signal
import time

import msgspec

from engine.agent.child import Child
from engine.agent.endings import exit_reason
from engine.agent.home import Home
from engine.agent.logs import LogBuffer
from engine.agent.note import Note, encode_note
from engine.agent.priority import restore
from engine.agent.reconcile import Life
from engine.agent.restart import STEADY_SECONDS, judge_end
from engine.drivers import driver_named
from engine.drivers.base import Command, Driver, DriverError
from engine.errors import Said, said, system_words
from engine.errors import gettext_noop as _
from engine.protocol.agent import ProcessState, ProcessStatus
from engine.protocol.launch import ProcessSpec

log = logging.getLogger(__name__)


class EngineProcess:
    """Started again when it ends unasked, as `judge_end` says."""

    def __init__(self, spec: ProcessSpec, home: Home) -> None:
        self.spec = spec
        self.log = LogBuffer()
        self.restarts = 0
        self.started_at = time.time()
        self.exited = asyncio.Event()
        """It has ended for good."""
        self.status: ProcessStatus = "starting"
        self.child: Child | None = None
        """The one that lives, or lived last; None while it waits to be started again."""
        self.spare: Child | None = None
        """Another one of its kind, ready to be told what to do."""
        self._home = home
        self._adopted: Child | None = None
        self._stop_asked = asyncio.Event()
        self._failures = 0
        self._exit_code: int | None = None
        self._reason = Said()
        self._ended_because = Said()
        self._own_fault = False

    @classmethod
    def adopt(cls, note: Note, child: Child, home: Home) -> "EngineProcess":
        """Of an agent that has gone. Raises DriverError when this one cannot handle it."""
        process = cls(note.spec, home)
        driver_named(note.spec.driver, home.drivers)
        process.status = "running" if note.spec.role == "rank" else "starting"
        process.restarts, process._failures = note.restarts, note.failures
        process.started_at = note.started_at
        process.child = process._adopted = child
        return process

    @property
    def life(self) -> Life:
        if self.exited.is_set():
            return "exited"
        return "stopping" if self._stop_asked.is_set() else "alive"

    @property
    def driver(self) -> Driver:
        """Raises DriverError when this node has no such driver; then nothing was started."""
        return driver_named(self.spec.driver, self._home.drivers)

    @property
    def pid(self) -> int | None:
        return self.child.pid if self.child else None

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
        if self.status == "starting" and self.child is not None:
            self.status = "running"
            self._home.changed()

    async def live(self) -> None:
        """From the first start to the end that is final."""
        while not self._stop_asked.is_set():
            try:
                code = await self._live_once()
            except DriverError as error:
                self._note_end(None, _not_started(error.said))
                break
            lived = time.time() - self.started_at
            verdict = judge_end(self._failures, code, lived, at_work=self._was_at_work)
            self._failures = verdict.failures
            if verdict.delay is None or self._stop_asked.is_set():
                break
            await self._pause(verdict.delay)
        self.drop_spare()
        self.status = "exited"
        self.exited.set()
        self._home.changed()

    async def stop(self) -> None:
        """Ask, wait, insist; `exited` is set once it is gone."""
        if self._stop_asked.is_set():
            return
        self._stop_asked.set()
        self.drop_spare()
        if self.child is None:
            return
        self.child.signal_group(self.driver.stop_signal)
        try:
            async with asyncio.timeout(self.driver.stop_seconds):
                await self.exited.wait()
        except TimeoutError:
            self.log.append(f"(still running after {self.driver.stop_seconds:g} s: killed)")
            self.kill()

    def end_because(self, reason: Said, *, own_fault: bool = False) -> None:
        """Kill it, to be started again; `reason` is told in place of the signal."""
        if self.child is None or self.child.ended.is_set() or self._ended_because:
            return
        self._ended_because, self._own_fault = reason, own_fault
        self.log.append(f"({reason})")
        self.kill()

    def kill(self) -> None:
        if self.child and not self.child.ended.is_set():
            self.child.signal_group(signal.SIGKILL)
            if self.child.stopped_keeper:
                self.child.kill()

    def let_go(self) -> None:
        """This agent ends; the process waits for another."""
        self.drop_spare()
        if self.child:
            self.child.close()

    @property
    def waits_for_its_work(self) -> bool:
        """Its program is told on its standard input what to do; only then can it have a spare."""
        return bool(self.driver.command(self.spec).standard_input)

    def spawn_spare(self) -> None:
        """Raises OSError."""
        command = self._command()
        self.spare = Child.spawn(command, self.spec.key, self._home.folder, self._stop)

    def drop_spare(self) -> None:
        """Its keeper ends it: nobody else would know of it."""
        spare, self.spare = self.spare, None
        if spare is None:
            return
        if spare.stopped_keeper:
            spare.kill()
        spare.close()

    @property
    def _was_at_work(self) -> bool:
        """Whether the one that has just ended did what it is for, and no harm."""
        if self.child is None or self._own_fault:
            return False
        return self.child.at_work or (self.spec.role == "head" and self.status == "running")

    @property
    def _stop(self) -> tuple[signal.Signals, float]:
        return self.driver.stop_signal, self.driver.stop_seconds

    def _command(self) -> Command:
        """With what the panel adds to the environment. Raises DriverError."""
        command = self.driver.command(self.spec)
        environment = {**self._home.environment.variables, **command.environment}
        return msgspec.structs.replace(command, environment=environment)

    async def _live_once(self) -> int | None:
        """Exit code; None when it could not be started. Raises DriverError."""
        try:
            child = self._adopted or self._begin()
        except OSError as error:
            self._note_end(None, _not_started(system_words(error)))
            return None
        self.child, self._adopted, self._own_fault = child, None, False
        child.listen(self._keep)
        await child.came.wait()
        if self.spec.role == "rank":
            self.status = "running"
        self._home.changed()
        await child.ended.wait()
        asked = self._stop_asked.is_set()
        code = child.code if child.code is not None else -signal.SIGKILL
        because, self._ended_because = self._ended_because, Said()
        self._note_end(code, because or exit_reason(code, asked, self.log.last))
        return code

    def _begin(self) -> Child:
        """From the spare when there is one. Raises OSError and DriverError."""
        command = self._command()
        self.started_at = time.time()
        child, self.spare = self.spare, None
        if child is None or child.ended.is_set():
            child = Child.spawn(command, self.spec.key, self._home.folder, self._stop)
        else:
            restore(child)
        note = Note(
            spec=self.spec,
            restarts=self.restarts,
            failures=self._failures,
            started_at=self.started_at,
        )
        child.give(encode_note(note), command.standard_input)
        return child

    async def _pause(self, seconds: float) -> None:
        """Until it is due again, or not wanted any more."""
        self.restarts += 1
        self.child, self.status = None, "starting"
        log.info("%s: %s Starting it again in %.3g s.", self.spec.key, self._reason, seconds)
        self.log.append(f"({self._reason} Starting it again in {seconds:.3g} s.)")
        self._home.changed()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop_asked.wait()

    def _keep(self, line: str, fresh: bool) -> None:
        text = line.replace(self.spec.token, "***") if self.spec.token else line
        self.log.append(self._home.environment.clean(text), fresh)

    def _note_end(self, code: int | None, reason: Said) -> None:
        self._exit_code, self._reason = code, reason


def _not_started(problem: Said) -> Said:
    return said(_("It could not be started: %(problem)s"), problem=problem)
