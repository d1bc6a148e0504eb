"""A rank's view of the steps, without tensors: mirrors, digests and what every KV slot holds."""

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.config import BLOCK_SIZE
from engine.protocol.steps import (
    PENDING,
    Result,
    Row,
    Sampling,
    Step,
    Timings,
    TokenLogprobs,
    step_digest,
)

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


def report(token: int, top: int) -> TokenLogprobs:
    """A made-up report: every token was the likeliest, before ids 0, 1, 2, …"""
    others = [other for other in range(top) if other != token]
    ranked = [(token, -0.5), *((other, -1.5 - index) for index, other in enumerate(others))]
    return TokenLogprobs(token, -0.5, 1, tuple(ranked[:top]))


@dataclass
class Held:
    sampling: Sampling
    table: list[int] = field(default_factory=list)
    computed: int = 0
    known: list[int] = field(default_factory=list)
    """The admitted history and what was drawn since, where drawing depends on it."""


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
        self.reasons: dict[int, str] = {}
        """Sequences that fail for another reason."""
        self.expected = 0
        self.drawn: dict[int, int] = {}
        """By sequence: what the last step drew."""

    def run(self, step: Step) -> Result:
        assert step.n == self.expected, "steps come in order"
        self.expected += 1
        for gone in step.released:
            del self.sequences[gone]
        if self.token_budget is not None:
            assert sum(len(row.tokens) for row in step.rows) <= self.token_budget
        assert len({row.seq for row in step.rows}) == len(step.rows), "one row a sequence"
        drawn = [self._row(row) for row in step.rows]
        self.drawn = {
            row.seq: token for row, token in zip(step.rows, drawn, strict=True) if token is not None
        }
        mirrors = [
            (row.seq, self.sequences[row.seq].computed, len(self.sequences[row.seq].table))
            for row in step.rows
        ]
        assert step_digest(step.epoch, step.n, mirrors) == step.digest, "mirrors agree"
        sampled = [
            (row, token) for row, token in zip(step.rows, drawn, strict=True) if token is not None
        ]
        unwell = self.poisoned | self.reasons.keys()
        return Result(
            n=step.n,
            tokens=[token for _row, token in sampled],
            failed=[row.seq for row in step.rows if row.seq in unwell],
            timings=Timings(total=0.002, compute=0.001, communicate=0.001),
            logprobs=self._logprobs(sampled),
            scores={row.seq: self._scores(row) for row in step.rows if row.targets},
            reasons={
                row.seq: self.reasons[row.seq] for row in step.rows if row.seq in self.reasons
            },
        )

    def _logprobs(self, sampled: list[tuple[Row, int]]) -> tuple[TokenLogprobs | None, ...]:
        counts = [self.sequences[row.seq].sampling.logprobs for row, _token in sampled]
        if all(count is None for count in counts):
            return ()
        return tuple(
            None if count is None else report(token, count)
            for (_row, token), count in zip(sampled, counts, strict=True)
        )

    def _scores(self, row: Row) -> tuple[TokenLogprobs, ...]:
        assert len(row.targets) <= len(row.tokens), "a target follows a token of its row"
        following = zip(row.tokens[1:], row.targets, strict=False)
        assert all(token == target for token, target in following), "targets follow"
        count = self.sequences[row.seq].sampling.logprobs or 0
        return tuple(report(token, count) for token in row.targets)

    def _row(self, row: Row) -> int | None:
        if row.admit is not None:
            assert row.seq not in self.sequences, "a sequence is admitted once"
            known = list(row.admit.history)
            self.sequences[row.seq] = Held(row.admit.sampling, computed=row.start, known=known)
        held = self.sequences[row.seq]
        assert row.start == held.computed, "rows follow on"
        assert row.tokens, "no empty row"
        held.table += row.new_blocks
        assert len(set(held.table)) == len(held.table)
        held.computed += len(row.tokens)
        assert held.computed <= len(held.table) * BLOCK_SIZE, "every token has a slot"
        tokens = row.tokens
        if PENDING in tokens:
            assert len(tokens) == 1, "a token being drawn is alone"
            assert row.seq in self.drawn, "the step before draws it"
            tokens = [self.drawn[row.seq]]
        for offset, token in enumerate(tokens, row.start):
            self.kv[held.table[offset // BLOCK_SIZE], offset % BLOCK_SIZE] = token
        if not row.sample:
            return None
        history = [
            self.kv[held.table[position // BLOCK_SIZE], position % BLOCK_SIZE]
            for position in range(held.computed)
        ]
        token = self.next_token(history, held.sampling)
        if held.sampling.needs_history:
            assert held.known == history, "what was admitted and drawn is what was computed"
            held.known.append(token)
        return token
