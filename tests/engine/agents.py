"""A driver whose processes are small Python programs, and waits with a deadline."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Hashable, Mapping

import aiohttp
import psutil

from engine.config import EngineConfig
from engine.drivers.base import Command, Named, NoAnswer
from engine.protocol.launch import Address, ProcessSpec, Role, encode_spec
from engine.protocol.stats import EngineStats

DEADLINE = 20.0

SERVE = "import sys; sys.stdin.readline(); print('serving', flush=True); sys.stdin.read()"
"""A well-behaved engine process: reads its spec, works, ends when its lifeline does."""
DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('deaf', flush=True); time.sleep(600)"
)
"""Ignores both the request to stop and its lifeline."""


class ScriptDriver:
    """`spec.model_path` is the program. Heads answer with what is in `answers`."""

    name = "script"
    stop_signal = signal.SIGTERM
    stop_seconds = 10.0
    stall_seconds = 30.0
    names: Mapping[str, Named] = {}

    def __init__(self) -> None:
        self.answers: dict[str, EngineStats] = {}
        self.held: list[tuple[str, int | None]] = []
        """What heads were told of their batch: launch and rows, in order."""

    def command(self, spec: ProcessSpec) -> Command:
        return Command(
            argv=[sys.executable, "-u", "-c", spec.model_path],
            standard_input=encode_spec(spec) + b"\n",
        )

    async def ready(self, http: aiohttp.ClientSession, spec: ProcessSpec) -> bool:
        answer = self.answers.get(spec.launch)
        return answer is not None and answer.status == "ready"

    async def stats(self, http: aiohttp.ClientSession, spec: ProcessSpec) -> EngineStats:
        try:
            return self.answers[spec.launch]
        except KeyError:
            raise NoAnswer("The head does not answer.") from None

    async def hold_batch(
        self, http: aiohttp.ClientSession, spec: ProcessSpec, rows: int | None
    ) -> int | None:
        if spec.launch not in self.answers:
            raise NoAnswer("The head does not answer.")
        self.held.append((spec.launch, rows))
        return rows or 32

    def progress(self, stats: EngineStats) -> Hashable:
        return stats.steps


def spec_of(
    script: str, launch: str = "l1", role: Role = "rank", rank: int | None = 0, **changes: object
) -> ProcessSpec:
    fields: dict[str, object] = {
        "launch": launch,
        "token": "launch-token-value",
        "role": role,
        "rank": rank if role == "rank" else None,
        "driver": "script",
        "model_path": script,
        "served_name": "test",
        "config": EngineConfig(),
        "host": "127.0.0.1",
        "http": Address("127.0.0.1", 1),
        "control": Address("127.0.0.1", 2),
    }
    return ProcessSpec(**(fields | changes))  # type: ignore[arg-type]  # Names checked by msgspec.


async def until(condition: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
    ends = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > ends:
            raise AssertionError(f"Waited {deadline:g} s in vain for {what}.")
        await asyncio.sleep(0.01)


def lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
