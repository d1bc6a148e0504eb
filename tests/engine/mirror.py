"""A rank's view of the steps, without tensors: mirrors, digests and what every KV slot holds."""

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.config import BLOCK_SIZE
from engine.protocol.steps import Result, Row, Sampling, Step, Timings, step_digest

NextToken = Callable[[list[int], Sampling], int]


def next_token(history: list[int], sampling: Sampling) -> int:
    """A deterministic stand-in for a model: depends on every token, the position and the seed."""
    state = 17 + sampling.seed
    for position, token in enumerate(history):
        state = (state * 31 + token + position) % 1_000_003
    return state % 97


def answer(prompt: list[int], count: int, sampling: Sampling | None = None) -> list[int]:
    """What an undisturbed run emits."""
    history = list(prompt)
    for _ in range(count):
        history.append(next_token(history, sampling or Sampling()))
    return history[len(prompt) :]


@dataclass
class Held:
    sampling: Sampling
    table: list[int] = field(default_factory=list)
    computed: int = 0


class RankMirror:
    """Applies steps as a rank would; asserts what a rank must be able to rely on."""

    def __init__(self, next_token: NextToken = next_token, token_budget: int | None = None) -> None:
        self.next_token = next_token
        self.token_budget = token_budget
        self.sequences: dict[int, Held] = {}
        self.kv: dict[tuple[int, int], int] = {}
        """(block, slot) -> the token whose keys and values are there."""
        self.poisoned: set[int] = set()
        """Sequences whose next logits are not finite."""
        self.expected = 0

    def run(self, step: Step) -> Result:
        assert step.n == self.expected, "steps come in order"
        self.expected += 1
        for gone in step.released:
            del self.sequences[gone]
        if self.token_budget is not None:
            assert sum(len(row.tokens) for row in step.rows) <= self.token_budget
        assert len({row.seq for row in step.rows}) == len(step.rows), "one row a sequence"
        tokens = [self._row(row) for row in step.rows]
        mirrors = [
            (row.seq, self.sequences[row.seq].computed, len(self.sequences[row.seq].table))
            for row in step.rows
        ]
        assert step_digest(step.epoch, step.n, mirrors) == step.digest, "mirrors agree"
        return Result(
            n=step.n,
            tokens=[token for token in tokens if token is not None],
            failed=[row.seq for row in step.rows if row.seq in self.poisoned],
            timings=Timings(total=0.002, compute=0.001, communicate=0.001),
        )

    def _row(self, row: Row) -> int | None:
        if row.admit is not None:
            assert row.seq not in self.sequences, "a sequence is admitted once"
            self.sequences[row.seq] = Held(row.admit.sampling, computed=row.start)
        held = self.sequences[row.seq]
        assert row.start == held.computed, "rows follow on"
        assert row.tokens, "no empty row"
        held.table += row.new_blocks
        assert len(set(held.table)) == len(held.table)
        held.computed += len(row.tokens)
        assert held.computed <= len(held.table) * BLOCK_SIZE, "every token has a slot"
        for offset, token in enumerate(row.tokens, row.start):
            self.kv[held.table[offset // BLOCK_SIZE], offset % BLOCK_SIZE] = token
        if not row.sample:
            return None
        history = [
            self.kv[held.table[position // BLOCK_SIZE], position % BLOCK_SIZE]
            for position in range(held.computed)
        ]
        return self.next_token(history, held.sampling)
