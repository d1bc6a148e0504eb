"""Queries against paged keys and values, in bounded memory.

Short stretches are computed in one call. Long ones, and those whose scores are capped, go through
the keys part by part with a running softmax (Milakov and Gimelshein, arXiv 1805.02867; Dao et al.,
arXiv 2205.14135), so that neither scores nor masks of all keys ever exist at once.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import BLOCK_SIZE
from engine.layers.cache import KVCache
from engine.layers.inputs import AttentionGroup
from engine.layers.softcap import soften

NUMBERS_AT_ONCE = 1 << 19
"""Most scores, and most numbers of keys and values, that a part has over all rows and heads."""


class Attend:
    """One layer's attention. Queries that share a KV head are laid out as if they were more
    positions of it, so keys and values are never repeated."""

    def __init__(
        self, cache: KVCache, layer: int, scale: float, softcap: float | None = None
    ) -> None:
        """In a cache of latents, an entry is key and value at once."""
        self._cache = cache
        self._layer = layer
        self.scale = scale
        self.softcap = softcap
        self._value_dim = cache.value_dim or cache.key_dim

    def __call__(self, queries: Tensor, group: AttentionGroup) -> Tensor:
        """`queries` (tokens, heads, key dim) of one group; returns (tokens, heads, value dim)."""
        kv_heads = self._cache.kv_heads
        heads = queries.shape[1]
        q = queries.view(group.rows, group.queries, kv_heads, -1, queries.shape[2])
        q = q.transpose(1, 2).reshape(group.rows, kv_heads, -1, queries.shape[2])
        if group.mask is None or self.softcap is not None:
            out = self._in_parts(q, group)
        else:
            out = self._at_once(q, group, group.mask)
        out = out.view(group.rows, kv_heads, group.queries, -1, self._value_dim)
        return out.transpose(1, 2).reshape(-1, heads, self._value_dim)

    def _read(self, tables: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        keys, values = self._cache.read(self._layer, tables, rows)
        return keys, keys if values is None else values

    def _at_once(self, q: Tensor, group: AttentionGroup, mask: Tensor) -> Tensor:
        keys, values = self._read(group.tables, group.rows)
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, scale=self.scale)

    def _in_parts(self, q: Tensor, group: AttentionGroup) -> Tensor:
        """The running softmax: what was summed so far is scaled down when a larger score comes."""
        shape = q.shape[:-1]
        total = q.new_zeros(*shape, self._value_dim)
        weight = q.new_zeros(*shape, 1)
        # Finite, so that a part in which a query sees nothing gives zeros and not NaN.
        peak = q.new_full((*shape, 1), torch.finfo(q.dtype).min)
        q = q * self.scale
        for first, part in self._parts(group, shape.numel()):
            keys, values = self._read(part, group.rows)
            scores = soften(q @ keys.transpose(-1, -2), self.softcap)
            hide(scores, group, first)
            higher = torch.maximum(peak, scores.amax(dim=-1, keepdim=True))
            shares = scores.sub_(higher).exp_()
            shrink = (peak - higher).exp_()
            total = total.mul_(shrink).add_(shares @ values)
            weight = weight.mul_(shrink).add_(shares.sum(dim=-1, keepdim=True))
            peak = higher
        return total / weight

    def _parts(self, group: AttentionGroup, queries: int) -> Iterator[tuple[int, Tensor]]:
        """Pieces of the group's tables, and which key of a table each begins with."""
        entry = group.rows * self._cache.kv_heads * (self._cache.key_dim + self._cache.value_dim)
        width = max(1, NUMBERS_AT_ONCE // (max(queries, entry) * BLOCK_SIZE))
        tables = group.tables.view(group.rows, -1)
        for first in range(0, group.blocks, width):
            yield first * BLOCK_SIZE, tables[:, first : first + width].reshape(-1)


def hide(scores: Tensor, group: AttentionGroup, first: int) -> None:
    """Put -inf where a query may not look. `first` is the part's place in the tables."""
    count = scores.shape[-1]
    if not group.sees_all(first, count):
        hidden = hidden_keys(group, first, count)
        repeats = scores.shape[2] // group.queries
        hidden = hidden.repeat_interleave(repeats, dim=1).unsqueeze(1)
        scores.masked_fill_(hidden, float("-inf"))


def hidden_keys(group: AttentionGroup, first: int, count: int) -> Tensor:
    """Where a query may not look, bool (rows, queries, count), from table place `first` on."""
    places = torch.arange(first, first + count, device=group.offsets.device)
    keys = (group.offsets.unsqueeze(1) + places).unsqueeze(1)
    queries = group.positions.unsqueeze(2)
    hidden = keys > queries
    return hidden if group.window is None else hidden.logical_or_(keys <= queries - group.window)
