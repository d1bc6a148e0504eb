"""Paged keys and values of one rank."""

import torch
from torch import Tensor

from engine.config import BLOCK_SIZE, KvDtype


class KVCache:
    """Blocks of BLOCK_SIZE tokens for each local layer and KV head.

    With `value_dim` 0 it holds one entry a token and no values: latent attention's.
    One block beyond `num_blocks` stays zero for ever: it pads shorter block tables, so that what
    is masked out can never be NaN. For the same reason blocks are cleared when they are handed
    to a sequence.
    """

    def __init__(
        self,
        layers: int,
        num_blocks: int,
        kv_heads: int,
        key_dim: int,
        value_dim: int,
        dtype: KvDtype = "fp32",
    ) -> None:
        self.num_blocks = num_blocks
        self.padding_block = num_blocks
        self.kv_heads = kv_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.dtype = dtype
        shape = (layers, num_blocks + 1, BLOCK_SIZE, kv_heads)
        self._keys = torch.zeros(*shape, key_dim)
        self._values = torch.zeros(*shape, value_dim) if value_dim else None

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + (0 if self._values is None else self._values.nbytes)

    def clear(self, blocks: list[int]) -> None:
        if blocks:
            index = torch.tensor(blocks)
            self._keys.index_fill_(1, index, 0.0)
            if self._values is not None:
                self._values.index_fill_(1, index, 0.0)

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor | None) -> None:
        """Store keys and values, each (tokens, kv heads, dim), at `slots`."""
        self._keys[layer].view(-1, self.kv_heads, self.key_dim).index_copy_(0, slots, keys)
        if self._values is not None and values is not None:
            flat = self._values[layer].view(-1, self.kv_heads, self.value_dim)
            flat.index_copy_(0, slots, values)

    def read(self, layer: int, tables: Tensor, rows: int) -> tuple[Tensor, Tensor | None]:
        """Keys and values of `rows` block tables, each float32 (rows, kv heads, tokens, dim)."""
        keys = self._keys[layer].index_select(0, tables)
        keys = keys.view(rows, -1, self.kv_heads, self.key_dim).transpose(1, 2)
        if self._values is None:
            return keys, None
        values = self._values[layer].index_select(0, tables)
        return keys, values.view(rows, -1, self.kv_heads, self.value_dim).transpose(1, 2)
