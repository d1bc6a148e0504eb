"""One process in the hands of its keeper, seen from the agent."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from engine.agent.keeper import __main__ as keeper_program
from engine.agent.keeper.frames import Frames, pack
from engine.agent.lines import LineSplitter
from engine.agent.proc import look_at
from engine.drivers.base import Command
from engine.protocol.launch import AT_WORK

ORPHAN_SECONDS = 30.0
"""How long an engine waits for another agent when its own has gone."""
KEEPER_FD = 3
KEPT_LINES = 200
LOST = -signal.SIGKILL
"""The exit code of a process whose keeper was killed: the kernel kills it too."""

_SECRET_WORDS = ("TOKEN", "PASSWORD", "SECRET")
_SECRET_NAMES = ("DATABASE_URL", "REDIS_URL")


def environment_without_secrets() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name not in _SECRET_NAMES and not any(word in name for word in _SECRET_WORDS)
    }


class Child:
    """Made inside a running event loop, which it listens with; `close` it in the end."""

    def __init__(self, line: socket.socket, keeper: int, door: Path) -> None:
        self.keeper = keeper
        """Pid of the keeper."""
        self.pid: int | None = None
        self.started_at = 0.0
        self.note = b""
        self.pulses = 0
        self.at_work = False
        """As its pulse says."""
        self.code: int | None = None
        self.came = asyncio.Event()
        """Set once the pid is known, or it has ended without one."""
        self.ended = asyncio.Event()
        """Set with `code`, after the last of its output."""
        self._line = line
        self._door = door
        self._frames = Frames()
        self._splitter = LineSplitter()
        self._lines: deque[tuple[str, bool]] = deque(maxlen=KEPT_LINES)
        self._take: Callable[[str, bool], None] | None = None
        self._pidfd: int | None = None
        line.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(line, self._hear)

    @classmethod
    def spawn(
        cls, command: Command, label: str, folder: Path, stop: tuple[signal.Signals, float]
    ) -> "Child":
        """Start a keeper and, through it, the command; raises OSError when that cannot be.

        `stop`: what asks the process to end, and how long that may take, for when it is orphaned.
        """
        line, other = socket.socketpair()
        try:
            keeper = _spawn_keeper(other, label)
        except OSError:
            line.close()
            raise
        finally:
            other.close()
        door = folder / f"{uuid4().hex}.keeper"
        child = cls(line, keeper, door)
        child._reap_keeper_in_the_end()
        orders = {
            "argv": command.argv,
            "environment": environment_without_secrets() | command.environment,
            "directory": command.directory,
            "stop_signal": stop[0],
            "stop_seconds": stop[1],
            "orphan_seconds": ORPHAN_SECONDS,
            "socket": str(door),
        }
        child._say(b"B", json.dumps(orders).encode())
        return child

    @classmethod
    def knock(cls, path: Path) -> "Child":
        """Ask a keeper that another agent left; raises OSError when there is none behind it."""
        line = socket.socket(socket.AF_UNIX)
        folder = os.open(path.parent, os.O_PATH)
        try:
            line.connect(f"/proc/self/fd/{folder}/{path.name}")
        except OSError:
            line.close()
            raise
        finally:
            os.close(folder)
        credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        keeper, _, _ = struct.unpack("3i", credentials)
        return cls(line, keeper, path)

    def give(self, note: bytes, standard_input: bytes) -> None:
        """Its work: until then it is a spare. The note is what a later agent finds."""
        self._say(b"N", note)
        self._say(b"I", standard_input)

    def listen(self, take: Callable[[str, bool], None]) -> None:
        """Have every line of output, those of before too; False for what was told before."""
        self._take = take
        while self._lines:
            take(*self._lines.popleft())

    def signal_group(self, number: int) -> None:
        if not self.ended.is_set():
            self._say(b"K", str(int(number)).encode())

    @property
    def stopped_keeper(self) -> bool:
        """It heeds nothing: somebody stopped it with a signal."""
        return look_at(self.keeper).state == "T"

    def kill(self) -> None:
        """Whatever state the keeper is in: the kernel ends the process with it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.keeper, signal.SIGKILL)

    def close(self) -> None:
        """Let go of it: a keeper with an engine waits for another agent, a spare ends."""
        if self._line.fileno() >= 0:
            self._loop.remove_reader(self._line)
            self._line.close()
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _say(self, kind: bytes, payload: bytes) -> None:
        try:
            self._line.sendall(pack(kind, payload))
        except BlockingIOError:  # It does not listen any more, so it is of no use any more.
            self.kill()
        except OSError:  # It has gone; what follows it says so.
            return

    def _hear(self) -> None:
        try:
            data = self._line.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for kind, payload in self._frames.feed(data):
            self._obey(kind, payload)
        if not data:
            self._lose_keeper()

    def _lose_keeper(self) -> None:
        """The kernel is ending the process too; it is waited for, or its ports are not free."""
        self._loop.remove_reader(self._line)
        with contextlib.suppress(OSError):  # Gone already, or the disk cannot be written to.
            self._door.unlink()
        if self._pidfd is None:
            self._end(LOST)
        elif not self.ended.is_set():
            self._loop.add_reader(self._pidfd, self._end, LOST)

    def _obey(self, kind: bytes, payload: bytes) -> None:
        match kind:
            case b"S":
                started = json.loads(payload)
                self.pid, self.started_at = started["pid"], started["started_at"]
                with contextlib.suppress(ProcessLookupError):
                    self._pidfd = os.pidfd_open(started["pid"])
                self.came.set()
            case b"N":
                self.note = payload
            case b"o" | b"O":
                for line in self._splitter.feed(payload):
                    self._print(line, kind == b"O")
            case b"P":
                self.pulses += 1
                self.at_work |= payload == AT_WORK
            case b"X":
                self._say(b"Q", b"")
                self._end(int(payload))

    def _print(self, line: str, fresh: bool) -> None:
        if self._take:
            self._take(line, fresh)
        else:
            self._lines.append((line, fresh))

    def _end(self, code: int) -> None:
        if self.ended.is_set():
            return
        for line in self._splitter.end():
            self._print(line, True)
        self.code = code
        self.came.set()
        self.ended.set()
        self.close()

    def _reap_keeper_in_the_end(self) -> None:
        """It is a child of this process, whoever listens to it by then."""
        descriptor = os.pidfd_open(self.keeper)

        def reap() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.keeper, os.WNOHANG)

        self._loop.add_reader(descriptor, reap)


def _spawn_keeper(line: socket.socket, label: str) -> int:
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", keeper_program.__file__, str(KEEPER_FD), label],
        environment_without_secrets(),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
            (os.POSIX_SPAWN_DUP2, line.fileno(), KEEPER_FD),
        ],
        setsid=True,
    )
