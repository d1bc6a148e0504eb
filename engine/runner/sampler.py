"""Draws one token a row, as each sequence's settings say, and reports what the model thought of it.

In order: bias, penalties, what is forbidden, temperature, min_p, top_k, top_p; then the token
that noise keyed by (seed, position) draws. Every row is worked on alone, so
its token does not depend on the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from engine.protocol.steps import Admit, Sampling, TokenLogprobs
from engine.runner.filters import Floats, draw
from engine.runner.grammar import GrammarError, Grammars
from engine.runner.history import NEVER, History
from engine.runner.logprobs import report

COLDEST = 1e-5
"""Temperatures below this are greedy: what they divide by would overflow."""


@dataclass(frozen=True)
class Draw:
    """What became of one row."""

    token: int = 0
    """Means nothing where the row failed."""
    logprobs: TokenLogprobs | None = None
    failed: bool = False
    reason: str = ""
    """Why it failed, where it was not that the logits were not finite."""


class Sampler:
    """Of the output rank: it alone keeps what drawing depends on."""

    def __init__(self, token_count: int, grammars: Grammars) -> None:
        """Ids from `token_count` on are padding, never drawn and never reported."""
        self._token_count = token_count
        self._grammars = grammars
        self._histories: dict[int, History] = {}
        self._failed: set[int] = set()
        """A step may be on its way that still has a row for one of these; it means nothing."""
        self._scratch = np.empty(token_count, np.float32)

    def forget(self, released: Iterable[int]) -> None:
        """Drop what is kept of sequences that ended."""
        for seq in released:
            self._histories.pop(seq, None)
            self._failed.discard(seq)

    def sample(
        self, logits: Tensor, seqs: list[int], admits: list[Admit], positions: list[int]
    ) -> list[Draw]:
        """One draw for each row of `logits` (rows, vocabulary).

        `positions` are where the drawn tokens will stand in their sequences.
        """
        rows, finite = self._rows(logits)
        draws = [
            self._draw(rows[index], seq, admits[index], positions[index])
            if finite[index] and seq not in self._failed
            else Draw(failed=True)
            for index, seq in enumerate(seqs)
        ]
        self._failed.update(seq for seq, draw in zip(seqs, draws, strict=True) if draw.failed)
        return draws

    def score(self, logits: Tensor, targets: Sequence[int], top: int) -> list[TokenLogprobs | None]:
        """What the model thought of given tokens, one for each row of `logits`; None where these
        are not finite.
        """
        rows, finite = self._rows(logits)
        return [
            report(rows[index], target, top) if finite[index] else None
            for index, target in enumerate(targets)
        ]

    def _rows(self, logits: Tensor) -> tuple[Floats, NDArray[np.bool_]]:
        """Of the tokens that exist, float32 (rows, token count), and whether each row is finite."""
        known = logits[:, : self._token_count].float().cpu()
        # Both are NaN where any number is, and many times faster than looking at every number.
        finite = known.amin(dim=1).isfinite() & known.amax(dim=1).isfinite()
        return known.numpy(), finite.numpy()

    def _draw(self, row: Floats, seq: int, admit: Admit, position: int) -> Draw:
        sampling = admit.sampling
        try:
            history = self._history(seq, admit, position)
            changed = self._change(row, sampling, history)
        except GrammarError as error:
            return Draw(failed=True, reason=str(error))
        token = int(changed.argmax())
        if changed[token] == NEVER:
            return Draw(failed=True, reason="Every token is forbidden here.")
        if not is_greedy(sampling):
            token = self._choose(changed, changed[token], sampling, position)
        if history is not None:
            history.advance(token)
        logprobs = None if sampling.logprobs is None else report(row, token, sampling.logprobs)
        return Draw(token, logprobs)

    def _history(self, seq: int, admit: Admit, position: int) -> History | None:
        if not admit.sampling.needs_history:
            return None
        history = self._histories.get(seq)
        if history is None:
            history = self._histories[seq] = History(admit, self._token_count, self._grammars)
        history.check_length(position)
        return history

    def _change(self, row: Floats, sampling: Sampling, history: History | None) -> Floats:
        """The logits after bias, penalties and what is forbidden; `row` stays as it is."""
        if history is None and not sampling.logit_bias:
            return row
        changed = row.copy()
        for token, bias in sampling.logit_bias.items():
            if token < len(changed):
                changed[token] += bias
        if history is not None:
            history.penalise(changed)
            history.forbid(changed)
        return changed

    def _choose(self, row: Floats, highest: np.floating, sampling: Sampling, position: int) -> int:
        # Subtracting the largest first keeps a low temperature from overflowing.
        weights = np.subtract(row, highest, out=self._scratch)
        weights /= np.float32(sampling.temperature)
        np.exp(weights, out=weights)
        return draw(weights, sampling, sampling.seed, position)


def is_greedy(sampling: Sampling) -> bool:
    return sampling.temperature < COLDEST or sampling.top_k == 1
