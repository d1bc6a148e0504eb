"""A rank that speaks the real protocol but holds no model: its answers follow a script.

In a test it runs in the test's own event loop and can be held, hung or cut off. As a process,
`python -m tests.engine.fake_rank` takes a rank's ProcessSpec on standard input, like the real one.
"""

import asyncio
import os
import sys
import time

from engine.errors import Said
from engine.protocol.framing import pack_frame, read_frame
from engine.protocol.launch import ProcessSpec, decode_spec
from engine.protocol.steps import (
    PROTOCOL_VERSION,
    Activity,
    Doing,
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
    Sampling,
    Shutdown,
    Step,
    StepDone,
    ToRank,
    Welcome,
    decode_to_rank,
    encode,
)
from tests.engine.bundled import bundled_tokenizer
from tests.engine.mirror import RankMirror

SCRIPT = "The quick brown fox jumps over the lazy dog. Ünïcödé 漢字 🙂 works too.\n"


BLOCK_BYTES = 1000


class Speaker:
    """The token at position p is the script's p-th, over and over, whatever the prompt says."""

    def __init__(self, tokens: list[int]) -> None:
        self.tokens = tokens

    def __call__(self, history: list[int], sampling: Sampling) -> int:
        return self.tokens[len(history) % len(self.tokens)]

    def said(self, prompt_tokens: int, count: int) -> list[int]:
        """What it answers to a prompt of that length."""
        return [self.tokens[(prompt_tokens + index) % len(self.tokens)] for index in range(count)]


class FakeRank:
    def __init__(self, spec: ProcessSpec, rank: int, speaker: Speaker) -> None:
        self.spec = spec
        self.rank = rank
        self.mirror = RankMirror(speaker, spec.config.token_budget)
        self.output = rank == spec.config.plan.output_rank
        self.available_bytes = 1 << 30
        """Left for keys and values, it says."""
        self.answered = 0
        self.deaf = False
        """Whether pings stay unanswered."""
        self.doing: Doing = ""
        """What it says it is at, ever since it was made."""
        self.received = 0
        """Steps that arrived, answered or not."""
        self.pings = 0
        self.expert_tokens: tuple[int, ...] = ()
        self._made_at = time.monotonic()
        self.holding = False
        """Whether steps stay unanswered from the beginning."""
        self.short_lived = False
        """Whether it vanishes once it has loaded."""
        self._allowed: int | None = None
        self._changed = asyncio.Condition()
        self._steps: asyncio.Queue[Step] = asyncio.Queue()
        self._writer: asyncio.StreamWriter | None = None

    async def allow(self, steps: int | None) -> None:
        """Answer this many more steps, then fall silent; None answers every step."""
        async with self._changed:
            self._allowed = None if steps is None else self.answered + steps
            self._changed.notify_all()

    def cut(self) -> None:
        """Vanish without a word."""
        assert self._writer is not None
        self._writer.close()

    def fail(self, reason: str) -> None:
        self._send(Failed(Said(reason)))

    async def run(self) -> None:
        """Until the head says so or hangs up."""
        control = self.spec.control
        reader, self._writer = await asyncio.open_connection(control.host, control.port)
        self._send(
            Hello(PROTOCOL_VERSION, self.spec.launch, self.spec.token, self.rank, os.getpid())
        )
        work = asyncio.create_task(self._work())
        try:
            while self._take(decode_to_rank(await read_frame(reader))):
                pass
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            work.cancel()
            self._writer.close()

    def _take(self, message: ToRank) -> bool:
        match message:
            case Welcome():
                self._send(Progress("meeting"))
                if self.rank == 0:
                    self._send(Meeting("127.0.0.1", 1))
            case Join():
                self._send(Progress("loading", 0.5, "half of it"))
                self._send(Loaded("box", self.available_bytes, BLOCK_BYTES, 0))
            case Fit() if self.short_lived:
                return False
            case Fit():
                self._send(Ready(1000, 2000, 0.1, 1, 0, 1, "none", "none"))
            case Step():
                self.received += 1
                self._steps.put_nowait(message)
            case Ping() if not self.deaf:
                self.pings += 1
                self._send(
                    Pong("idle", self.mirror.expected - 1, self._activity(), self.expert_tokens)
                )
            case Shutdown():
                return False
        return True

    def _activity(self) -> Activity:
        return Activity(self.doing, 0, time.monotonic() - self._made_at)

    async def _work(self) -> None:
        while True:
            step = await self._steps.get()
            async with self._changed:
                await self._changed.wait_for(
                    lambda: (
                        not self.holding
                        and (self._allowed is None or self.answered < self._allowed)
                    )
                )
            result = self.mirror.run(step)
            self.answered += 1
            self._send(result if self.output else StepDone(step.n, result.timings))

    def _send(self, message: FromRank) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(pack_frame(encode(message)))


def main() -> None:
    spec = decode_spec(sys.stdin.buffer.readline())
    assert spec.rank is not None
    speaker = Speaker(bundled_tokenizer().encode(SCRIPT))
    asyncio.run(FakeRank(spec, spec.rank, speaker).run())


if __name__ == "__main__":
    main()
