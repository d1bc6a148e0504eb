"""One supervised process: how it is started, how it is stopped, what it last said."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dashboard.embedded.process import die_with_parent, tail

STEADY_SECONDS = 20.0
"""Living this long makes the next restart a quick one again."""
FIRST_DELAY, MOST_DELAY = 0.1, 10.0


@dataclass(frozen=True)
class Program:
    """What is run. Spawn on the main thread only: the child dies with the thread that forked it."""

    name: str
    log: Path
    spawn: Callable[[], subprocess.Popen[bytes]]
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 8.0


class Child:
    """A program that should be running. Restarting is the supervisor's doing."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.restart_at: float | None = None
        self._delay = FIRST_DELAY

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        self.restart_at = None
        self.started_at = time.monotonic()
        self.process = self.program.spawn()

    def plan_restart(self) -> float:
        """Seconds until it is started again: doubling while it keeps dying."""
        if time.monotonic() - self.started_at > STEADY_SECONDS:
            self._delay = FIRST_DELAY
        delay, self._delay = self._delay, min(MOST_DELAY, self._delay * 2)
        self.restart_at = time.monotonic() + delay
        return delay

    def obituary(self) -> str:
        """How it ended and the last line of its log, in one line."""
        code = self.process.returncode if self.process else None
        last = self.last_words()
        return f"{self.name} {ended(code)}" + (f": {last}" if last else "")

    def last_words(self) -> str:
        lines = [line.strip() for line in tail(self.program.log).splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""

    def ask_to_stop(self) -> None:
        self.restart_at = None
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.program.stop_signal)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)


def ended(code: int | None) -> str:
    if code is None:
        return "could not be started"
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def python_program(
    name: str,
    arguments: list[str],
    log: Path,
    directory: Path,
    environment: Mapping[str, str],
    stop_seconds: float = 8.0,
    *,
    first: bool = False,
) -> Program:
    """A Python process in a session of its own (Ctrl-C reaches only `up`), its output in a file.

    One that goes `first` gets more of a busy processor, where we may give it that.
    """

    def spawn() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, *arguments],
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_before_it_begins(first),
            )

    return Program(name=name, log=log, spawn=spawn, stop_seconds=stop_seconds)


def _before_it_begins(first: bool) -> Callable[[], None]:
    die = die_with_parent(signal.SIGKILL)

    def prepare() -> None:
        die()
        if first:
            with contextlib.suppress(OSError):
                os.nice(-5)

    return prepare
