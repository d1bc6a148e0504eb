"""Paged keys and values of one rank."""

import torch
from torch import Tensor

from engine.config import BLOCK_SIZE


class KVCache:
    """Blocks of BLOCK_SIZE tokens for each local layer and KV head, float32.

    One block beyond `num_blocks` stays zero for ever: it pads shorter block tables, so that what
    is masked out can never be NaN. For the same reason blocks are cleared when they are handed
    to a sequence.
    """

    def __init__(self, layers: int, num_blocks: int, kv_heads: int, head_dim: int) -> None:
        self.num_blocks = num_blocks
        self.padding_block = num_blocks
        self.kv_heads = kv_heads
        self.head_dim = head_dim
        shape = (layers, 2, num_blocks + 1, BLOCK_SIZE, kv_heads, head_dim)
        self._data = torch.zeros(shape)

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    def clear(self, blocks: list[int]) -> None:
        if blocks:
            self._data.index_fill_(2, torch.tensor(blocks), 0.0)

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values, each (tokens, kv heads, head dim), at `slots`."""
        flat = self._data[layer].view(2, -1, self.kv_heads, self.head_dim)
        flat[0].index_copy_(0, slots, keys)
        flat[1].index_copy_(0, slots, values)

    def read(self, layer: int, tables: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Keys and values of `rows` block tables, each (rows, kv heads, tokens, head dim)."""
        keys, values = self._data[layer].index_select(1, tables)
        shape = (rows, -1, self.kv_heads, self.head_dim)
        return keys.view(shape).transpose(1, 2), values.view(shape).transpose(1, 2)
