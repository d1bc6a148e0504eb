"""Paged keys and values of one rank."""

import torch
from torch import Tensor

from engine.config import KvDtype
from engine.device import CPU
from engine.layers.pages import Pages, make_pages


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
        device: torch.device = CPU,
    ) -> None:
        self.layers = layers
        self.kv_heads = kv_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.dtype = dtype
        self.device = device
        self.version = 0
        """Another one whenever the memory is another."""
        self.resize(num_blocks)

    def resize(self, num_blocks: int) -> None:
        """Make room for so many blocks; what was in the old ones is gone."""
        self.num_blocks = self.padding_block = num_blocks
        self.version += 1
        self._keys = self._pages(self.key_dim)
        self._values = self._pages(self.value_dim) if self.value_dim else None

    def _pages(self, dim: int) -> Pages:
        shape = (self.layers, self.num_blocks + 1, self.kv_heads, dim)
        return make_pages(self.dtype, *shape, self.device)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + (0 if self._values is None else self._values.nbytes)

    def stored(self, layer: int) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """One layer's keys and values as they are kept, for kernels that read them in place."""
        values = () if self._values is None else self._values.stored(layer)
        return self._keys.stored(layer), values

    def clear(self, blocks: list[int]) -> None:
        """Make `blocks` zero in every layer."""
        if blocks:
            index = torch.tensor(blocks, device=self.device)
            self._keys.clear(index)
            if self._values is not None:
                self._values.clear(index)

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor | None) -> None:
        """Store keys and values, each (tokens, kv heads, dim), at `slots`."""
        self._keys.write(layer, slots, keys)
        if self._values is not None and values is not None:
            self._values.write(layer, slots, values)

    def read(self, layer: int, tables: Tensor, rows: int) -> tuple[Tensor, Tensor | None]:
        """Keys and values of `rows` block tables, each float32 (rows, kv heads, tokens, dim)."""
        keys = _by_row(self._keys, layer, tables, rows)
        if self._values is None:
            return keys, None
        return keys, _by_row(self._values, layer, tables, rows)


def _by_row(pages: Pages, layer: int, tables: Tensor, rows: int) -> Tensor:
    blocks = pages.read(layer, tables)
    return blocks.view(rows, -1, pages.heads, pages.dim).transpose(1, 2)
