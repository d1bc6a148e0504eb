"""Grouped-query attention over paged keys and values, for this rank's heads."""

import torch
from torch import Tensor

from engine.kernels import Linear
from engine.layers.attend import Attend
from engine.layers.cache import KVCache
from engine.layers.inputs import StepInputs
from engine.layers.norm import RMSNorm
from engine.layers.rotary import rotate
from engine.parallel import Group


class Attention:
    """`qkv` is column parallel (this rank's queries, keys, values in that order), `output` is row
    parallel: its partial results are summed over the group."""

    def __init__(
        self,
        qkv: Linear,
        output: Linear,
        cache: KVCache,
        layer: int,
        heads: int,
        attend: Attend,
        group: Group,
        window: int | None = None,
        norms: tuple[RMSNorm, RMSNorm] | None = None,
    ) -> None:
        """`window`: a query sees itself and window - 1 tokens before it; None: all of them.
        `norms`: of each query head and of each key head, before they are rotated."""
        self.qkv = qkv
        self.output = output
        self.cache = cache
        self.layer = layer
        self.heads = heads
        self.attend = attend
        self.group = group
        self.window = window
        self.norms = norms

    def __call__(self, x: Tensor, inputs: StepInputs, angles: tuple[Tensor, Tensor]) -> Tensor:
        """(tokens, hidden) to the same, summed over the group."""
        queries, keys, values = self._project(x, angles)
        self.cache.write(self.layer, inputs.slots, keys, values)
        groups = inputs.windowed if self.window else inputs.groups
        attended = [
            self.attend(queries[group.start : group.start + group.tokens], group)
            for group in groups
        ]
        joined = attended[0] if len(attended) == 1 else torch.cat(attended)
        return self.group.all_reduce(self.output(joined.view(len(x), -1)))

    def _project(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries, rotated keys and values, each (tokens, heads, head dim)."""
        heads, kv_heads = self.heads, self.cache.kv_heads
        mixed = self.qkv(x).view(len(x), heads + 2 * kv_heads, self.cache.key_dim)
        turned, values = mixed[:, : heads + kv_heads], mixed[:, heads + kv_heads :]
        if self.norms is not None:
            of_queries, of_keys = self.norms
            turned = torch.cat((of_queries(turned[:, :heads]), of_keys(turned[:, heads:])), dim=1)
        turned = rotate(turned, *angles)
        return turned[:, :heads], turned[:, heads:], values
