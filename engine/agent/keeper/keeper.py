"""The keeper's loop: one engine, at most one agent.

An agent's orders start the engine. Its note is what a later agent has to know; an engine without
one is a spare and ends with its agent. Note, input and output live in this process's memory:
secrets do not lie on a disk, and a full one hurts nobody.
"""

import json
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from engine.agent.keeper.engine import Engine
from engine.agent.keeper.line import Door, Line
from engine.agent.keeper.output import Output

DRAIN_SECONDS = 1.0
"""How long the last words of an engine that ended are waited for."""

Watch = Callable[[int, int, Callable[[], None]], None]


class Keeper:
    def __init__(self, agent: socket.socket) -> None:
        self._agent: Line | None = Line(agent)
        self._door: Door | None = None
        self._engine: Engine | None = None
        self._output = Output()
        self._note = b""
        self._pulse = b""
        """The last one, until it is told."""
        self._told_end = False
        self._drained_at = 0.0
        self._orphaned_at: float | None = None
        """When an engine without an agent is ended."""
        self._kill_at: float | None = None
        self._leaving = False
        self._orders: dict[str, Any] = {}

    def run(self) -> None:
        while not self._leaving:
            self._tell()
            self._wait()
            self._mind_deadlines()
        if self._door:
            self._door.remove()

    # What happens next.

    def _wait(self) -> None:
        poller = select.poll()
        handlers: dict[int, Callable[[], None]] = {}

        def watch(descriptor: int, events: int, handler: Callable[[], None]) -> None:
            poller.register(descriptor, events)
            handlers[descriptor] = handler

        if self._door:
            watch(self._door.fileno(), select.POLLIN, self._open_door)
        if self._agent:
            wants = select.POLLIN | (select.POLLOUT if self._agent.blocked else 0)
            watch(self._agent.fileno(), wants, self._hear)
        if self._engine:
            self._watch_engine(self._engine, watch)
        for descriptor, _ in poller.poll(self._patience()):
            if not self._leaving:
                handlers[descriptor]()

    def _watch_engine(self, engine: Engine, watch: Watch) -> None:
        if engine.code is None:
            watch(engine.pidfd, select.POLLIN, self._reap)
        if engine.input:
            watch(engine.stdin, select.POLLOUT, engine.write)
        if engine.stdout in engine.open:
            watch(engine.stdout, select.POLLIN, self._read_output)
        if engine.pulse in engine.open:
            watch(engine.pulse, select.POLLIN, self._read_pulse)

    def _patience(self) -> int | None:
        """Milliseconds to the next deadline."""
        now = time.monotonic()
        deadlines = [at for at in (self._kill_at, self._orphaned_at) if at is not None]
        if self._drained_at > now:
            deadlines.append(self._drained_at)
        return max(0, int((min(deadlines) - now) * 1000) + 1) if deadlines else None

    def _mind_deadlines(self) -> None:
        now = time.monotonic()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._signal(signal.SIGKILL)
        if self._orphaned_at is not None and now >= self._orphaned_at:
            self._orphaned_at = None
            if self._engine is None or self._engine.code is not None:
                self._leaving = True
            else:
                self._output.add(b"(No agent came back: ending.)\n")
                self._kill_at = now + float(self._orders["stop_seconds"])
                self._signal(self._orders["stop_signal"])

    # The engine.

    def _begin(self, orders: dict[str, Any]) -> None:
        self._orders = orders
        try:
            self._door = Door(orders["socket"])
        except OSError as error:
            self._output.add(f"(No later agent can find this process: {error}.)\n".encode())
        engine = Engine(orders["argv"], orders["environment"], orders["directory"])
        signal.signal(signal.SIGTERM, lambda *_: self._signal(orders["stop_signal"]))
        self._engine = engine
        self._introduce()

    def _signal(self, number: int) -> None:
        if self._engine:
            self._engine.signal_group(number)

    def _read_output(self) -> None:
        if self._engine:
            self._output.add(self._engine.read(self._engine.stdout))

    def _read_pulse(self) -> None:
        if self._engine:
            self._pulse = self._engine.read(self._engine.pulse)[-1:] or self._pulse

    def _reap(self) -> None:
        if self._engine:
            self._engine.reap()
            self._kill_at = None
            self._drained_at = time.monotonic() + DRAIN_SECONDS
            # Nobody came in time, and now there is nothing left to keep.
            self._leaving = self._agent is None and self._orphaned_at is None

    # Agents.

    def _open_door(self) -> None:
        line = self._door.open() if self._door else None
        if line is None:
            return
        if self._agent:
            self._agent.close()
        self._agent, self._orphaned_at, self._told_end = line, None, False
        line.queue(b"N", self._note)
        self._introduce()
        line.queue(b"o", self._output.old())

    def _introduce(self) -> None:
        if self._agent and self._engine:
            started = {"pid": self._engine.pid, "started_at": self._engine.started_at}
            self._agent.queue(b"S", json.dumps(started).encode())

    def _hear(self) -> None:
        if self._agent is None:
            return
        for kind, payload in self._agent.receive():
            self._obey(kind, payload)
        self._check_agent()

    def _obey(self, kind: bytes, payload: bytes) -> None:
        match kind:
            case b"B":
                self._begin(json.loads(payload))
            case b"N":
                self._note = payload
            case b"I":
                if self._engine:
                    self._engine.input += payload
            case b"K":
                self._signal(int(payload))
            case b"Q":
                self._leaving = True

    def _check_agent(self) -> None:
        if self._agent is None or not self._agent.broken:
            return
        self._agent.close()
        self._agent = None
        if self._engine and self._note:
            self._orphaned_at = time.monotonic() + self._orders["orphan_seconds"]
        else:
            self._leaving = True  # A spare's lifeline goes with this process.

    def _tell(self) -> None:
        """As far as the agent takes it; what it does not take now waits where it is."""
        while self._agent and (self._agent.blocked or self._next(self._agent)):
            before = self._agent.blocked
            self._agent.send()
            self._check_agent()
            if self._agent and self._agent.blocked == before:
                return

    def _next(self, agent: Line) -> bool:
        if self._pulse:
            agent.queue(b"P", self._pulse)
            self._pulse = b""
        elif self._output.fresh:
            agent.queue(b"O", self._output.take())
        elif self._drained and self._engine and not self._told_end:
            self._told_end = True
            agent.queue(b"X", str(self._engine.code).encode())
        return agent.blocked

    @property
    def _drained(self) -> bool:
        engine = self._engine
        if engine is None or engine.code is None:
            return False
        return engine.stdout not in engine.open or time.monotonic() >= self._drained_at
