"""What one step computes, in the form the layers use."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from engine.device import CPU, upload


@dataclass(frozen=True)
class Reach:
    """How far one rank's attention layers look, and into what."""

    group_size: int
    """Query heads that share one KV head on this rank."""
    padding_block: int
    """The cache's always-zero block."""
    window: int | None = None
    """Of the sliding layers: a query sees itself and window - 1 tokens before it. None: there are
    no such layers."""
    full: bool = True
    """Whether any layer looks at everything."""
    device: torch.device = CPU
    """Where the cache is, and where a step's numbers are to be."""


@dataclass(frozen=True)
class AttentionGroup:
    """Rows that attend in one call: many decode rows, or one prefill row.

    All rows of a group have `queries` tokens and see at most as many blocks as `tables` is wide.
    """

    start: int
    """First token of the group in the step's flat order."""
    rows: int
    queries: int
    tables: Tensor
    """Block ids, int64 (rows * blocks,), padded with the cache's always-zero block."""
    positions: Tensor
    """Of each query, int64 (rows, queries)."""
    offsets: Tensor
    """Position of the first token of each row's table, int64 (rows,)."""
    window: int | None
    mask: Tensor | None
    """Added to the scores, float32 (rows, 1, queries * heads per KV head, blocks * block size).
    None where that would be large: it is then worked out from the positions, part by part."""

    @property
    def tokens(self) -> int:
        return self.rows * self.queries

    @property
    def blocks(self) -> int:
        """Width of a row's table."""
        return len(self.tables) // self.rows

    @cached_property
    def _edges(self) -> tuple[int, int, int, int]:
        """The lowest and highest query position, the lowest and highest offset."""
        positions, offsets = self.positions, self.offsets
        low, high = positions.aminmax()
        near, far = offsets.aminmax()
        return int(low), int(high), int(near), int(far)

    def sees_all(self, first: int, count: int) -> bool:
        """Whether every query sees each of the `count` keys from place `first` of its table on."""
        lowest, highest, near, far = self._edges
        if far + first + count - 1 > lowest:
            return False
        return self.window is None or near + first > highest - self.window


@dataclass(frozen=True)
class RowTables:
    """A step's rows with their whole block tables, each tensor int64."""

    firsts: Tensor
    """Of each row: its first token in the step's flat order."""
    starts: Tensor
    """That token's position."""
    counts: Tensor
    """How many tokens of it the step computes."""
    offsets: Tensor
    """Where its block table begins in `tables`."""
    tables: Tensor


Groups = tuple[list[AttentionGroup], list[AttentionGroup]]


@dataclass(frozen=True)
class StepInputs:
    """A step's tokens in flat order, sequence after sequence."""

    tokens: Tensor
    """int64 (tokens,)"""
    positions: Tensor
    """int64 (tokens,)"""
    slots: Tensor
    """Where each token's key and value go: block * block size + offset, int64 (tokens,)."""
    rows: RowTables
    sampled: Tensor
    """Flat index of each row's last token whose logits are wanted, int64 (samples,)."""
    bundle: Callable[[], Groups]
    """Bundles the rows for attention in torch; kernels that read `rows` have no need of it."""

    @cached_property
    def _groups(self) -> Groups:
        return self.bundle()

    def on(self, device: torch.device) -> "StepInputs":
        """The same where layers compute; `rows` stay on the host, whose kernels alone read them."""
        if device.type == "cpu":
            return self
        parts = upload((self.tokens, self.positions, self.slots, self.sampled), device)
        tokens, positions, slots, sampled = parts
        return replace(self, tokens=tokens, positions=positions, slots=slots, sampled=sampled)

    @property
    def groups(self) -> list[AttentionGroup]:
        """For layers that look at everything."""
        return self._groups[0]

    @property
    def windowed(self) -> list[AttentionGroup]:
        """For sliding layers: the same rows with only the blocks inside the window."""
        return self._groups[1]
