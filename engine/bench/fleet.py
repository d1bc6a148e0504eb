"""Real rank processes on this machine and the least of a head, to measure what ranks take."""

import os
import secrets
import selectors
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from engine.config import EngineConfig
from engine.errors import DeadlineError, EngineError, RankError
from engine.protocol.framing import pack_frame, recv_frame
from engine.protocol.launch import Address, ProcessSpec, encode_spec
from engine.protocol.steps import (
    Failed,
    Fit,
    FromRank,
    Hello,
    Join,
    Loaded,
    Meeting,
    Progress,
    Ready,
    Result,
    Shutdown,
    Step,
    ToRank,
    Welcome,
    decode_from_rank,
    encode,
)

LOOPBACK = "127.0.0.1"
START_SECONDS = 120.0
STEP_SECONDS = 60.0
STOP_SECONDS = 5.0

M = TypeVar("M", bound=msgspec.Struct)


class Fleet:
    """The ranks of one replica, ready when entered and gone when left.

    Entering raises RankError with the reason of a rank that fails, DeadlineError when one hangs.
    """

    def __init__(self, model: Path, config: EngineConfig) -> None:
        self.config = config
        self.transport = ""
        self._model = model
        self._processes: list[subprocess.Popen[bytes]] = []
        self._links: list[socket.socket] = []
        self._arrivals = selectors.DefaultSelector()
        self._stack = ExitStack()

    def __enter__(self) -> "Fleet":
        with ExitStack() as stack:
            stack.callback(self._stop)
            listener = stack.enter_context(socket.create_server((LOOPBACK, 0)))
            self._start(listener.getsockname()[1])
            self._links = self._accept(listener)
            self._handshake()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def send(self, step: Step) -> None:
        self._broadcast(step)

    def result(self) -> Result:
        """Of the oldest step on its way."""
        deadline = time.monotonic() + STEP_SECONDS
        while time.monotonic() < deadline:
            for key, _events in self._arrivals.select(STEP_SECONDS):
                message = _read(self._links[key.data])
                if isinstance(message, Result):
                    return message
        raise DeadlineError("A step did not end.")

    def _start(self, port: int) -> None:
        spec = ProcessSpec(
            launch=secrets.token_hex(8),
            token=secrets.token_hex(32),
            role="rank",
            model_path=str(self._model.absolute()),
            served_name=self._model.stem,
            config=self.config,
            host=LOOPBACK,
            http=Address(LOOPBACK, 0),
            control=Address(LOOPBACK, port),
        )
        for rank in range(self.config.plan.world_size):
            process = subprocess.Popen(
                [sys.executable, "-m", "engine.rank"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                cwd=Path(__file__).resolve().parents[2],
                env=os.environ | {"OMP_NUM_THREADS": str(self.config.threads_per_rank)},
            )
            self._processes.append(process)
            if process.stdin is None:
                raise RankError(f"Rank {rank} was started without a standard input.")
            process.stdin.write(encode_spec(msgspec.structs.replace(spec, rank=rank)) + b"\n")
            process.stdin.flush()

    def _accept(self, listener: socket.socket) -> list[socket.socket]:
        links: dict[int, socket.socket] = {}
        listener.settimeout(START_SECONDS)
        while len(links) < self.config.plan.world_size:
            link, _address = listener.accept()
            links[_expect(link, Hello).rank] = link
        return [links[rank] for rank in sorted(links)]

    def _handshake(self) -> None:
        self._broadcast(Welcome(0))
        meeting = _expect(self._links[0], Meeting)
        self._broadcast(Join(meeting.host, meeting.port))
        for link in self._links:
            _expect(link, Loaded)
        self._broadcast(Fit(self.config.num_kv_blocks))
        self.transport = {_expect(link, Ready).transport for link in self._links}.pop()
        for rank, link in enumerate(self._links):
            self._arrivals.register(link, selectors.EVENT_READ, rank)

    def _broadcast(self, message: ToRank) -> None:
        frame = pack_frame(encode(message))
        for link in self._links:
            link.sendall(frame)

    def _stop(self) -> None:
        self._arrivals.close()
        for link in self._links:
            try:
                link.sendall(pack_frame(encode(Shutdown())))
            except OSError:
                continue
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for link in self._links:
            link.close()


def _read(link: socket.socket) -> FromRank:
    try:
        message = decode_from_rank(recv_frame(link))
    except EOFError as error:
        raise RankError("A rank ended by itself.") from error
    if isinstance(message, Failed):
        raise EngineError(message.reason.template, **message.reason.parts)
    return message


def _expect(link: socket.socket, kind: type[M]) -> M:
    """The next message but for progress."""
    link.settimeout(START_SECONDS)
    message = _read(link)
    while isinstance(message, Progress):
        message = _read(link)
    if not isinstance(message, kind):
        raise RankError(f"A rank said {type(message).__name__}, not {kind.__name__}.")
    return message
