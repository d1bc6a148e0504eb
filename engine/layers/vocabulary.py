"""Embedding and output head, each split over the vocabulary."""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels import Linear
from engine.layers.softcap import soften
from engine.parallel import Group
from engine.spans import Span


class Embedding:
    """Rows of this rank's part of the vocabulary; other tokens come from the rest of the group."""

    def __init__(self, table: Tensor, span: Span, group: Group, scale: float = 1.0) -> None:
        self.table = table
        self._span = span
        self._group = group
        self._scale = scale

    def __call__(self, tokens: Tensor) -> Tensor:
        """(tokens, hidden)"""
        rows = self._look_up(tokens)
        return rows if self._scale == 1.0 else rows * self._scale

    def _look_up(self, tokens: Tensor) -> Tensor:
        if self._group.size == 1:
            return F.embedding(tokens, self.table)
        local = tokens - self._span.start
        foreign = (local < 0) | (local >= self._span.size)
        rows = F.embedding(local.masked_fill(foreign, 0), self.table)
        return self._group.all_reduce(rows.masked_fill_(foreign.unsqueeze(1), 0.0))


class OutputHead:
    """Logits over the whole vocabulary, on the group's member 0."""

    def __init__(
        self, linear: Linear, spans: list[Span], group: Group, softcap: float | None = None
    ) -> None:
        self.linear = linear
        self._spans = spans
        self._group = group
        self._softcap = softcap

    def __call__(self, x: Tensor) -> Tensor | None:
        """(rows, vocabulary) on member 0, None on the others."""
        local = soften(self.linear(x), self._softcap)
        shapes = [(x.shape[0], span.size) for span in self._spans]
        parts = self._group.gather(local, shapes)
        if parts is None:
            return None
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
