"""Turns prompts into steps, for tests: a head's bookkeeping without a head's cleverness."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from engine.config import BLOCK_SIZE, EngineConfig
from engine.protocol.steps import PENDING, Admit, Result, Row, Sampling, Step, step_digest

GREEDY = Sampling(temperature=0.0)


class Stream:
    """One sequence as the test head sees it."""

    def __init__(self, seq: int, prompt: list[int], sampling: Sampling, blocks: list[int]) -> None:
        self.seq = seq
        self.prompt = prompt
        self.sampling = sampling
        self.blocks = blocks
        self.computed = 0
        self.output: list[int] = []
        self.scored = False
        """Whether the prompt's own tokens are to be scored."""

    @property
    def tokens(self) -> list[int]:
        return self.prompt + self.output

    @property
    def admit(self) -> Admit:
        history = tuple(self.tokens) if self.sampling.needs_history else ()
        return Admit(self.sampling, len(self.prompt), history)


class StepMaker(ABC):
    """Makes steps in order; a subclass says who executes them."""

    overlapped = False
    """Whether the ranks are left to know what the step before drew, as from the real head."""

    def __init__(self, config: EngineConfig, epoch: int = 7) -> None:
        self.config = config
        self.epoch = epoch
        self.n = 0
        self._next_seq = 0
        self._free = list(range(config.num_kv_blocks))
        self._released: list[int] = []
        self._drawing: set[int] = set()

    @abstractmethod
    def run(self, step: Step) -> Result: ...

    def open(self, prompt: list[int], sampling: Sampling = GREEDY) -> Stream:
        self._next_seq += 1
        return Stream(self._next_seq, prompt, sampling, [])

    def reopen(self, stream: Stream) -> Stream:
        """The same request as a new sequence, after its blocks were taken away."""
        self.close(stream)
        again = self.open(stream.prompt, stream.sampling)
        again.output = list(stream.output)
        return again

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
        tokens = stream.tokens[start : start + count]
        return Row(
            stream.seq,
            [PENDING] if self.overlapped and stream.seq in self._drawing else tokens,
            start,
            fresh,
            stream.computed == len(stream.tokens),
            stream.admit if start == 0 else None,
            tuple(stream.prompt[start + 1 : start + 1 + count]) if stream.scored else (),
        )

    def make_step(self, rows: list[Row], streams: Iterable[Stream]) -> Step:
        state = {stream.seq: (stream.computed, len(stream.blocks)) for stream in streams}
        mirrors = [(row.seq, *state[row.seq]) for row in rows]
        digest = step_digest(self.epoch, self.n, mirrors)
        step = Step(self.epoch, self.n, rows, self._released, digest)
        self._released = []
        self._drawing = {row.seq for row in rows if row.sample}
        self.n += 1
        return step

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
