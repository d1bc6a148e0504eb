"""A minimal head for tests: starts real rank processes and drives them step by step."""

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
    Ping,
    Pong,
    Progress,
    Ready,
    Result,
    Shutdown,
    Step,
    StepDone,
    ToRank,
    Welcome,
    decode_from_rank,
    encode,
)
from engine.rank.lifeline import PULSE_VARIABLE
from tests.engine.step_maker import StepMaker

HOSTS = ("127.0.0.1", "127.0.0.2")
START_SECONDS = 90.0
STEP_SECONDS = 60.0

M = TypeVar("M", bound=msgspec.Struct)


class RankFailed(AssertionError):
    """A rank said Failed; the message is its reason."""


class RankLink:
    """One connected rank."""

    def __init__(self, sock: socket.socket, hello: Hello) -> None:
        self.sock = sock
        self.hello = hello
        self.progress: list[Progress] = []

    def send(self, message: ToRank) -> None:
        self.sock.sendall(pack_frame(encode(message)))

    def receive(self, kind: type[M], seconds: float) -> M:
        """The next message but for progress; raises RankFailed on Failed."""
        deadline = time.monotonic() + seconds
        while True:
            self.sock.settimeout(max(0.01, deadline - time.monotonic()))
            message: FromRank = decode_from_rank(recv_frame(self.sock))
            if isinstance(message, Progress):
                self.progress.append(message)
                continue
            if isinstance(message, Failed):
                raise RankFailed(str(message.reason))
            assert isinstance(message, kind), f"{message} where {kind.__name__} was due"
            return message

    def ping(self) -> Pong:
        self.send(Ping())
        return self.receive(Pong, 10.0)


class RankFleet(StepMaker):
    """All ranks of one replica, ready when entered and gone when left."""

    pulse = -1
    """The descriptor that they send their pulses to, if any."""

    def __init__(self, model_path: Path, config: EngineConfig, log_dir: Path) -> None:
        super().__init__(config)
        self.model_path = model_path
        self.log_dir = log_dir
        self.launch = secrets.token_hex(4)
        self.token = secrets.token_hex(16)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.links: list[RankLink] = []
        self.loaded: list[Loaded] = []
        self.ready: list[Ready] = []
        self.step_seconds: list[float] = []
        self.results: list[Result] = []
        self._stack = ExitStack()

    def __enter__(self) -> "RankFleet":
        with ExitStack() as stack:
            stack.callback(self._stop)
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            control = Address("127.0.0.1", listener.getsockname()[1])
            for rank in range(self.config.plan.world_size):
                self._start(rank, control)
            self.links = self._accept(listener)
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

    def log(self, rank: int) -> str:
        return (self.log_dir / f"rank{rank}.log").read_text()

    def _start(self, rank: int, control: Address) -> None:
        spec = ProcessSpec(
            launch=self.launch,
            token=self.token,
            role="rank",
            rank=rank,
            model_path=str(self.model_path),
            served_name="test",
            config=self.config,
            host=HOSTS[rank % len(HOSTS)],
            http=Address("127.0.0.1", 1),
            control=control,
        )
        with (self.log_dir / f"rank{rank}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "engine.rank"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=() if self.pulse < 0 else (self.pulse,),
                env=os.environ | {PULSE_VARIABLE: str(self.pulse)},
            )
        self.processes.append(process)
        assert process.stdin is not None
        process.stdin.write(encode_spec(spec) + b"\n")
        process.stdin.flush()

    def _accept(self, listener: socket.socket) -> list[RankLink]:
        links: dict[int, RankLink] = {}
        deadline = time.monotonic() + START_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            while len(links) < self.config.plan.world_size:
                if not selector.select(timeout=0.5):
                    self._check_alive()
                    assert time.monotonic() < deadline, "the ranks did not connect"
                    continue
                sock, _ = listener.accept()
                hello = decode_from_rank(recv_frame(sock))
                assert isinstance(hello, Hello)
                assert (hello.launch, hello.token) == (self.launch, self.token)
                links[hello.rank] = RankLink(sock, hello)
        return [links[rank] for rank in sorted(links)]

    def _check_alive(self) -> None:
        for rank, process in enumerate(self.processes):
            assert process.poll() is None, f"rank {rank} ended early:\n{self.log(rank)}"

    def _handshake(self) -> None:
        self.broadcast(Welcome(self.epoch))
        meeting = self.links[0].receive(Meeting, START_SECONDS)
        self.broadcast(Join(meeting.host, meeting.port))
        self.loaded = [link.receive(Loaded, START_SECONDS) for link in self.links]
        self.broadcast(Fit(self.config.num_kv_blocks))
        self.ready = [link.receive(Ready, START_SECONDS) for link in self.links]

    def _stop(self) -> None:
        for link in self.links:
            try:
                link.send(Shutdown())
            except OSError:
                continue
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=10)
        for link in self.links:
            link.sock.close()

    def broadcast(self, message: ToRank) -> None:
        for link in self.links:
            link.send(message)

    def run(self, step: Step) -> Result:
        """One step on every rank."""
        began = time.perf_counter()
        self.broadcast(step)
        output = self.config.plan.output_rank
        for rank, link in enumerate(self.links):
            if rank != output:
                link.receive(StepDone, STEP_SECONDS)
        result = self.links[output].receive(Result, STEP_SECONDS)
        self.step_seconds.append(time.perf_counter() - began)
        self.results.append(result)
        assert result.n == step.n
        return result
