"""A minimal head for tests: starts real rank processes and drives them step by step."""

import secrets
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from engine.config import BLOCK_SIZE, EngineConfig
from engine.protocol.framing import pack_frame, recv_frame
from engine.protocol.launch import Address, ProcessSpec, encode_spec
from engine.protocol.steps import (
    Failed,
    FromRank,
    Hello,
    Join,
    Meeting,
    Ping,
    Pong,
    Progress,
    Ready,
    Result,
    Row,
    Sampling,
    Shutdown,
    Step,
    StepDone,
    ToRank,
    Welcome,
    decode_from_rank,
    encode,
    step_digest,
)

HOSTS = ("127.0.0.1", "127.0.0.2")
GREEDY = Sampling(temperature=0.0)
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
                raise RankFailed(message.reason)
            assert isinstance(message, kind), f"{message} where {kind.__name__} was due"
            return message

    def ping(self) -> Pong:
        self.send(Ping())
        return self.receive(Pong, 10.0)


class Stream:
    """One sequence as the test head sees it."""

    def __init__(self, seq: int, prompt: list[int], sampling: Sampling, blocks: list[int]) -> None:
        self.seq = seq
        self.prompt = prompt
        self.sampling = sampling
        self.blocks = blocks
        self.computed = 0
        self.output: list[int] = []

    @property
    def tokens(self) -> list[int]:
        return self.prompt + self.output


class RankFleet:
    """All ranks of one replica, ready when entered and gone when left."""

    def __init__(self, model_path: Path, config: EngineConfig, log_dir: Path) -> None:
        self.config = config
        self.model_path = model_path
        self.log_dir = log_dir
        self.launch = secrets.token_hex(4)
        self.token = secrets.token_hex(16)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.links: list[RankLink] = []
        self.ready: list[Ready] = []
        self.step_seconds: list[float] = []
        self.timings: list[Result] = []
        self.n = 0
        self.epoch = 7
        self._next_seq = 0
        self._free = list(range(config.num_kv_blocks))
        self._released: list[int] = []
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

    def open(self, prompt: list[int], sampling: Sampling = GREEDY) -> Stream:
        self._next_seq += 1
        return Stream(self._next_seq, prompt, sampling, [])

    def close(self, stream: Stream) -> None:
        self._free += stream.blocks
        self._released.append(stream.seq)

    def row(self, stream: Stream, count: int) -> Row:
        """The stream's next `count` tokens, with the blocks they need."""
        start = stream.computed
        needed = -(-(start + count) // BLOCK_SIZE) - len(stream.blocks)
        fresh, self._free = self._free[:needed], self._free[needed:]
        assert len(fresh) == max(0, needed), "the test needs more KV blocks"
        stream.blocks += fresh
        stream.computed += count
        return Row(
            stream.seq,
            stream.tokens[start : start + count],
            start,
            fresh,
            stream.computed == len(stream.tokens),
            stream.sampling if start == 0 else None,
        )

    def make_step(self, rows: list[Row], streams: Iterable[Stream]) -> Step:
        state = {stream.seq: (stream.computed, len(stream.blocks)) for stream in streams}
        mirrors = [(row.seq, *state[row.seq]) for row in rows]
        digest = step_digest(self.epoch, self.n, mirrors)
        step = Step(self.epoch, self.n, rows, self._released, digest)
        self._released = []
        self.n += 1
        return step

    def run(self, step: Step) -> Result:
        """One step on every rank."""
        began = time.perf_counter()
        self.broadcast(step)
        output = (self.config.plan.pp - 1) * self.config.plan.tp
        for rank, link in enumerate(self.links):
            if rank != output:
                link.receive(StepDone, STEP_SECONDS)
        result = self.links[output].receive(Result, STEP_SECONDS)
        self.step_seconds.append(time.perf_counter() - began)
        self.timings.append(result)
        assert result.n == step.n
        return result

    def advance(self, streams: list[Stream], counts: list[int]) -> Result:
        """Compute `counts` tokens of each stream in one step and append what was sampled."""
        rows = [self.row(stream, count) for stream, count in zip(streams, counts, strict=True)]
        result = self.run(self.make_step(rows, streams))
        sampled = [stream for stream, row in zip(streams, rows, strict=True) if row.sample]
        for stream, token in zip(sampled, result.tokens, strict=True):
            stream.output.append(token)
        return result

    def generate(
        self, prompts: list[list[int]], tokens: int, sampling: Sampling = GREEDY
    ) -> list[list[int]]:
        """Exactly `tokens` ids for each prompt: chunked prefill mixed with decode, one batch."""
        streams = [self.open(prompt, sampling) for prompt in prompts]
        while active := [stream for stream in streams if len(stream.output) < tokens]:
            batch, counts = self._schedule(active)
            self.advance(batch, counts)
        for stream in streams:
            self.close(stream)
        return [stream.output for stream in streams]

    def _schedule(self, streams: list[Stream]) -> tuple[list[Stream], list[int]]:
        """Decode rows first, then prefill chunks while the budget lasts."""
        budget = self.config.token_budget
        batch: list[Stream] = []
        counts: list[int] = []
        waiting = sorted(streams, key=lambda stream: len(stream.tokens) - stream.computed > 1)
        for stream in waiting[: self.config.max_batch_size]:
            count = min(budget, len(stream.tokens) - stream.computed)
            if count:
                batch.append(stream)
                counts.append(count)
                budget -= count
        return batch, counts
