"""What a driver knows about one kind of engine; the agent knows the rest."""

import signal
from collections.abc import Hashable, Mapping
from typing import Literal, Protocol

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


class Named(msgspec.Struct, frozen=True):
    """What one name of another engine's `/metrics` is here.

    A histogram is named once, by its family; its bars and its sum follow. Where an engine tells
    several values of a name (one for each of its own processes), they are folded into one.
    """

    metric: str
    """Ours; of a histogram without `_bucket` and `_sum`."""
    fold: Literal["sum", "max"] = "sum"
    label: str = ""
    """The label of theirs that tells values apart; its values become our labels."""
    fixed: str = ""
    """Our label, where theirs has none."""
    scale: float = 1.0
    histogram: bool = False


class Driver(Protocol):
    """One kind of engine. Stateless: every method is told which process it is about."""

    name: str
    stop_signal: signal.Signals
    """Asks a process to end in order; sent to its whole group."""
    stop_seconds: float
    """How long an orderly end may take before the group is killed."""
    stall_seconds: float
    """Work in hand and `progress` unchanged for this long means the engine hangs."""
    names: Mapping[str, Named]
    """What stands in this engine's own `/metrics` -> which metric of ours that is. Empty where
    `stats` tells everything."""

    def command(self, spec: ProcessSpec) -> Command:
        """Raises DriverError when this driver cannot start such a process."""

    async def ready(self, http: aiohttp.ClientSession, spec: ProcessSpec) -> bool:
        """Whether this head answers requests now; never raises for an engine that is away."""

    async def stats(self, http: aiohttp.ClientSession, spec: ProcessSpec) -> EngineStats:
        """What this head says about itself; raises NoAnswer."""

    async def hold_batch(
        self, http: aiohttp.ClientSession, spec: ProcessSpec, rows: int | None
    ) -> int | None:
        """Hold the head to advancing at most `rows` answers in one step; None lifts that. Answers
        what its cap is now, None where this engine cannot be held. Raises NoAnswer."""

    def progress(self, stats: EngineStats) -> Hashable:
        """A value that changes whenever the engine gets work done: alive means it changes."""
