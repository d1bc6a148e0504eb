"""From the last hidden states to drawn tokens and scored prompts.

The output head is a collective of the last stage: all of its ranks take the same calls, and only
the output rank gets logits.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.models import Decoder
from engine.protocol.steps import Admit, Row, TokenLogprobs
from engine.runner.sampler import Draw, Sampler

Draws = dict[int, Draw]
"""By sequence, in row order: what each sampled row drew."""
Scores = dict[int, list[TokenLogprobs | None]]
"""By sequence: what the model thought of each of its row's targets; None where its logits were not
finite."""

SCORED_AT_ONCE = 64
"""Prompt tokens whose logits are held at the same time."""


@dataclass(frozen=True)
class Readout:
    decoder: Decoder
    sampler: Sampler

    def draw(
        self, rows: list[Row], admits: list[Admit], firsts: list[int], hidden: Tensor
    ) -> Draws:
        """`firsts`: where each row begins in `hidden`."""
        sampled = [index for index, row in enumerate(rows) if row.sample]
        if not sampled:
            return {}
        places = [firsts[index] + len(rows[index].tokens) - 1 for index in sampled]
        logits = self.decoder.logits(hidden, torch.tensor(places))
        if logits is None:
            return {}
        seqs = [rows[index].seq for index in sampled]
        positions = [rows[index].start + len(rows[index].tokens) for index in sampled]
        drawn = self.sampler.sample(logits, seqs, [admits[index] for index in sampled], positions)
        return dict(zip(seqs, drawn, strict=True))

    def score(
        self, rows: list[Row], admits: list[Admit], firsts: list[int], hidden: Tensor
    ) -> Scores:
        scores: Scores = {}
        for index, row in enumerate(rows):
            top = admits[index].sampling.logprobs or 0
            found = list(self._score_row(row, firsts[index], top, hidden))
            if found:
                scores[row.seq] = found
        return scores

    def _score_row(
        self, row: Row, first: int, top: int, hidden: Tensor
    ) -> Iterator[TokenLogprobs | None]:
        for start in range(0, len(row.targets), SCORED_AT_ONCE):
            targets = row.targets[start : start + SCORED_AT_ONCE]
            places = torch.arange(first + start, first + start + len(targets))
            logits = self.decoder.logits(hidden, places)
            if logits is not None:
                yield from self.sampler.score(logits, targets, top)
