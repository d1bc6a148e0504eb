"""Grouped-query attention over paged keys and values, for this rank's heads."""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels import Linear
from engine.layers.cache import KVCache
from engine.layers.inputs import AttentionGroup, StepInputs
from engine.layers.rotary import rotate
from engine.parallel import Group


class Attention:
    """`qkv` is column parallel (this rank's queries, keys, values in that order), `output` is row
    parallel: its partial results are summed over the group."""

    def __init__(
        self, qkv: Linear, output: Linear, cache: KVCache, layer: int, heads: int, group: Group
    ) -> None:
        self.qkv = qkv
        self.output = output
        self._cache = cache
        self._layer = layer
        self._heads = heads
        self._group = group

    def __call__(self, x: Tensor, inputs: StepInputs, angles: tuple[Tensor, Tensor]) -> Tensor:
        kv_heads, head_dim = self._cache.kv_heads, self._cache.key_dim
        mixed = self.qkv(x).view(x.shape[0], self._heads + 2 * kv_heads, head_dim)
        rotated = rotate(mixed[:, : self._heads + kv_heads], *angles)
        queries, keys = rotated[:, : self._heads], rotated[:, self._heads :]
        self._cache.write(self._layer, inputs.slots, keys, mixed[:, self._heads + kv_heads :])
        attended = [self._attend(queries, group) for group in inputs.groups]
        joined = attended[0] if len(attended) == 1 else torch.cat(attended)
        return self._group.all_reduce(self.output(joined))

    def _attend(self, queries: Tensor, group: AttentionGroup) -> Tensor:
        """Attention of one group, (tokens, heads * head dim).

        The queries that share a KV head are laid out as if they were more positions of it, so
        keys and values are never repeated.
        """
        kv_heads, head_dim = self._cache.kv_heads, self._cache.key_dim
        keys, values = self._cache.read(self._layer, group.tables, group.rows)
        count = group.rows * group.queries
        q = queries[group.start : group.start + count]
        q = q.reshape(group.rows, group.queries, kv_heads, -1, head_dim).transpose(1, 2)
        q = q.reshape(group.rows, kv_heads, -1, head_dim)
        out = F.scaled_dot_product_attention(q, keys, values, attn_mask=group.mask)
        out = out.view(group.rows, kv_heads, group.queries, -1, head_dim).transpose(1, 2)
        return out.reshape(count, self._heads * head_dim)
