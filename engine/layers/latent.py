"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434), for this rank's heads.

The cache holds one entry a token for all heads: the normalised latent, then the rotated key that
they share. Heads are never unpacked from it. Each head's key matrix is applied to its query instead
("absorbed"), and its value matrix to what the head has attended to, so a token costs the cache's
width and no more. Attention then is that of many query heads over one KV head.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from engine.kernels import Linear
from engine.layers.attend import Attend
from engine.layers.cache import KVCache
from engine.layers.inputs import StepInputs
from engine.layers.norm import RMSNorm
from engine.layers.rotary import rotate
from engine.parallel import Group


class LowRankQuery:
    """Queries through a narrow middle; `down` is whole on every rank, `up` column parallel."""

    def __init__(self, down: Linear, norm: RMSNorm, up: Linear) -> None:
        self._down = down
        self._norm = norm
        self._up = up

    def __call__(self, x: Tensor) -> Tensor:
        return self._up(self._norm(self._down(x)))


class AbsorbedHeads:
    """Each head's matrices between the latent and its keys and values, float32 with any kernel.

    `weight` is (heads * (nope_dim + value_dim), kv_rank): of each head its keys' rows, then its
    values'.
    """

    def __init__(self, weight: Tensor, heads: int, nope_dim: int) -> None:
        per_head = weight.view(heads, -1, weight.shape[1])
        self.count = heads
        self.kv_rank = weight.shape[1]
        self._keys = per_head[:, :nope_dim].contiguous()
        self._values = per_head[:, nope_dim:].transpose(1, 2).contiguous()

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._values.nbytes

    def into_latent(self, queries: Tensor) -> Tensor:
        """Queries (tokens, heads, nope_dim) as (tokens, heads, kv_rank)."""
        return torch.bmm(queries.transpose(0, 1), self._keys).transpose(0, 1)

    def out_of_latent(self, attended: Tensor) -> Tensor:
        """Attended latents (tokens, heads, kv_rank) as (tokens, heads * value_dim)."""
        values = torch.bmm(attended.transpose(0, 1), self._values)
        return values.transpose(0, 1).reshape(len(attended), -1)


class LatentAttention:
    """`compress` is whole on every rank, so all of them keep the same entries; `query` is column
    parallel and `output` row parallel. `attend` takes whole entries for keys and for values."""

    def __init__(
        self,
        query: Callable[[Tensor], Tensor],
        compress: Linear,
        norm: RMSNorm,
        heads: AbsorbedHeads,
        output: Linear,
        cache: KVCache,
        layer: int,
        attend: Attend,
        group: Group,
    ) -> None:
        self._query = query
        self._compress = compress
        self._norm = norm
        self._heads = heads
        self._output = output
        self._cache = cache
        self._layer = layer
        self._attend = attend
        self._group = group

    def __call__(self, x: Tensor, inputs: StepInputs, angles: tuple[Tensor, Tensor]) -> Tensor:
        """(tokens, hidden) to the same, summed over the group."""
        self._cache.write(self._layer, inputs.slots, self._entries(x, angles), None)
        queries = self._queries(x, angles)
        attended = [
            self._attend(queries[group.start : group.start + group.tokens], group)
            for group in inputs.groups
        ]
        joined = attended[0] if len(attended) == 1 else torch.cat(attended)
        latents = joined[..., : self._heads.kv_rank]
        return self._group.all_reduce(self._output(self._heads.out_of_latent(latents)))

    def _entries(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """What is kept of each token, (tokens, 1, kv_rank + rope_dim)."""
        mixed = self._compress(x).unsqueeze(1)
        kv_rank = self._heads.kv_rank
        latent, key = mixed[..., :kv_rank], mixed[..., kv_rank:]
        return torch.cat((self._norm(latent), rotate(key, *angles)), dim=2)

    def _queries(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """(tokens, heads, kv_rank + rope_dim), to be held against entries."""
        rope_dim = angles[0].shape[-1]
        queries = self._query(x).view(len(x), self._heads.count, -1)
        plain, turned = queries[..., :-rope_dim], queries[..., -rope_dim:]
        return torch.cat((self._heads.into_latent(plain), rotate(turned, *angles)), dim=2)
