"""One operating-system process in a group of its own, watched without threads."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO

from engine.drivers.base import Command

LEASH = Path(__file__).with_name("leash.py")
MAX_LINE = 2000
"""Characters of a log line that are kept."""

_SECRET_WORDS = ("TOKEN", "PASSWORD", "SECRET")
_SECRET_NAMES = ("DATABASE_URL", "REDIS_URL")


def environment_without_secrets() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name not in _SECRET_NAMES and not any(word in name for word in _SECRET_WORDS)
    }


class Child:
    """Call `spawn` from the main thread: the kernel ties the child's life to the forking thread."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    def spawn(cls, command: Command) -> "Child":
        """Start the command; raises OSError when even the interpreter cannot be run."""
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), *command.argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=command.directory,
            env=environment_without_secrets() | command.environment,
        )
        with contextlib.suppress(BrokenPipeError):  # It ended already; its exit says why.
            _pipe(process.stdin).write(command.standard_input)
            _pipe(process.stdin).flush()
        return cls(process)

    async def wait(self) -> int:
        """Exit code, negative for a signal. The pid stays reserved until this returns."""
        descriptor = os.pidfd_open(self.pid)
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        return self._process.wait()

    async def output(self) -> AsyncIterator[bytes]:
        """Its output and errors as one stream of bytes, until every writer has gone."""
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: protocol, _pipe(self._process.stdout))
        try:
            while chunk := await reader.read(65536):
                yield chunk
        finally:
            transport.close()

    def signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Last resort, without an event loop: the group is dead and reaped when this returns."""
        self.signal_group(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5.0)
        self.close()

    def close(self) -> None:
        """Let go of the lifeline and the output."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("The child was started without pipes.")
    return stream


class LineSplitter:
    """Bytes in, whole lines out; a carriage return ends a line too (progress bars)."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[str]:
        *whole, self._rest = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield from _printable(line)
        if len(self._rest) > 4 * MAX_LINE:
            yield from self.end()

    def end(self) -> Iterator[str]:
        rest, self._rest = self._rest, b""
        yield from _printable(rest)


def _printable(line: bytes) -> Iterator[str]:
    text = line.decode(errors="replace").rstrip()
    if text:
        yield text[:MAX_LINE]
