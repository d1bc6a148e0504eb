"""One contestant's process, asked over its standard input and output."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from engine.bench.compare.entrants import ROOT, Entrant
from engine.bench.compare.players import asks, tree
from engine.errors import DeadlineError, EngineError

CLOSE_SECONDS = 30.0
TAIL = 300

S = TypeVar("S")


class Lost(EngineError):
    """A contestant that refused, failed or ended: a sentence."""


class Reply(msgspec.Struct, frozen=True):
    said: dict[str, Any] | None = None
    refused: str = ""
    peak_bytes: int | None = None


class Contestant:
    """Stopped between two answers, if it is not ours: it then takes no processor time at all."""

    def __init__(self, entrant: Entrant, threads: int, log: Path) -> None:
        self.entrant = entrant
        self.peak_bytes: int | None = None
        self._log = log
        self._buffer = b""
        self._process = self._start(threads)
        self._arrivals = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._arrivals.register(self._process.stdout, selectors.EVENT_READ)

    def ask(self, ask: asks.Ask, kind: type[S], seconds: float) -> S:
        """Raises Lost; whoever asks has woken it."""
        line = {"ask": type(ask).__name__, "with": asdict(ask)}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(line) + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._ended() from error
        reply = self._read(ask, time.monotonic() + seconds)
        self.peak_bytes = reply.peak_bytes or self.peak_bytes
        if reply.said is None:
            raise Lost(reply.refused)
        return msgspec.convert(reply.said, kind)

    def rest(self) -> None:
        if not self.entrant.ours:
            self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        if not self.entrant.ours:
            self._signal(signal.SIGCONT)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def cpu_seconds(self) -> float:
        return tree.cpu_seconds(self._process.pid)

    def close(self) -> None:
        self._arrivals.close()
        self.wake()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        # What it started and left behind, if anything.
        self._signal(signal.SIGTERM)
        self._process.stdout.close()

    def _start(self, threads: int) -> "subprocess.Popen[bytes]":
        self._log.parent.mkdir(parents=True, exist_ok=True)
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, str(threads))
        with self._log.open("wb") as log:
            return subprocess.Popen(
                self.entrant.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env=environment,
                # One group of all that it starts, to be stopped and woken together.
                start_new_session=True,
            )

    def _read(self, ask: asks.Ask, deadline: float) -> Reply:
        assert self._process.stdout is not None
        while b"\n" not in self._buffer:
            if not self._arrivals.select(max(0.0, deadline - time.monotonic())):
                raise DeadlineError(
                    f"{self.entrant.key} did not answer {type(ask).__name__} in time."
                )
            new = os.read(self._process.stdout.fileno(), 1 << 16)
            if not new:
                self._process.wait(CLOSE_SECONDS)
                raise self._ended()
            self._buffer += new
        line, _end, self._buffer = self._buffer.partition(b"\n")
        return msgspec.json.decode(line, type=Reply)

    def _ended(self) -> Lost:
        text = self._log.read_text(errors="replace").strip().splitlines()
        last = text[-1][-TAIL:].strip() if text else "it said nothing"
        return Lost(f"Its process ended: {last.rstrip('.')}. Its log is {self._log}.")

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return
