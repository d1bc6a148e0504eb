"""What a driver knows about one kind of engine; the agent knows the rest."""

import signal
from collections.abc import Hashable, Mapping
from typing import Protocol

import aiohttp
import msgspec

from engine.errors import EngineError
from engine.protocol.launch import ProcessSpec
from engine.protocol.stats import EngineStats


class DriverError(EngineError):
    """A driver that does not exist, or a spec it cannot turn into a process."""


class NoAnswer(EngineError):
    """An engine that did not answer, or answered nonsense; normal while it starts."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """How one process is started.

    `environment` is added to the agent's own, which is first cleared of secrets. `standard_input`
    is written once and the pipe is kept open: its end tells the process that its agent has gone.
    """

    argv: list[str]
    environment: dict[str, str] = {}
    directory: str | None = None
    standard_input: bytes = b""


class Driver(Protocol):
    """One kind of engine. Stateless: every method is told which process it is about."""

    name: str
    stop_signal: signal.Signals
    """Asks a process to end in order; sent to its whole group."""
    stop_seconds: float
    """How long an orderly end may take before the group is killed."""
    stall_seconds: float
    """Work in hand and `progress` unchanged for this long means the engine hangs."""
    metric_names: Mapping[str, str]
    """Our metric name -> the name in this engine's own `/metrics`."""

    def command(self, spec: ProcessSpec) -> Command:
        """Raises DriverError when this driver cannot start such a process."""

    async def ready(self, http: aiohttp.ClientSession, spec: ProcessSpec) -> bool:
        """Whether this head answers requests now; never raises for an engine that is away."""

    async def stats(self, http: aiohttp.ClientSession, spec: ProcessSpec) -> EngineStats:
        """What this head says about itself; raises NoAnswer."""

    def progress(self, stats: EngineStats) -> Hashable:
        """A value that changes whenever the engine gets work done: alive means it changes."""
