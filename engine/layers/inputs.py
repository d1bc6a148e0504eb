"""What one step computes, in the form the layers use."""

from dataclasses import dataclass

from torch import Tensor


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
    mask: Tensor
    """Added to the scores, float32 (rows, 1, queries * heads per KV head, blocks * block size)."""


@dataclass(frozen=True)
class StepInputs:
    """A step's tokens in flat order, sequence after sequence."""

    tokens: Tensor
    """int64 (tokens,)"""
    positions: Tensor
    """int64 (tokens,)"""
    slots: Tensor
    """Where each token's key and value go: block * block size + offset, int64 (tokens,)."""
    groups: list[AttentionGroup]
    sampled: Tensor
    """Flat index of each row's last token whose logits are wanted, int64 (samples,)."""
