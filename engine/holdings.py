"""What one rank holds of a model, matrix by matrix. Pure arithmetic: no torch, no I/O.

The planner turns it into bytes; a test compares it with what the ranks really build.
"""

from collections.abc import Iterator

import msgspec

from engine.model_config import LatentAttention, ModelConfig
from engine.shards import RankShare


class Matrix(msgspec.Struct, frozen=True):
    """What a linear kernel packs in one piece."""

    rows: int
    columns: int
    bias: bool = False

    @property
    def elements(self) -> int:
        return self.rows * self.columns


def packed_matrices(model: ModelConfig, share: RankShare) -> Iterator[Matrix]:
    """Of every layer of `share`, and of its output head, with tied embeddings too."""
    for layer in range(share.layers.start, share.layers.stop):
        yield from (
            _attention(model, share)
            if model.latent is None
            else _latent(model, model.latent, share)
        )
        yield from _feed_forward(model, share, layer)
    if share.last_stage:
        yield Matrix(share.vocab.size, model.hidden_size)


def plain_elements(model: ModelConfig, share: RankShare) -> int:
    """Numbers that are float32 with every kernel: norms, the embedding, latent attention's heads.

    Biases belong to their matrices, routers are counted by `router_elements`.
    """
    hidden = model.hidden_size
    norms = (4 if model.post_norms else 2) * hidden
    norms += 2 * model.head_dim if model.qk_norm else 0
    latent = model.latent
    if latent is not None:
        norms += latent.kv_rank + (latent.q_rank or 0)
        norms += share.heads.size * (latent.nope_dim + latent.value_dim) * latent.kv_rank
    ends = share.last_stage * hidden + share.first_stage * share.vocab.size * hidden
    return norms * share.layers.size + ends


def router_elements(model: ModelConfig, share: RankShare) -> int:
    """Weights of the routers, on every rank of a stage alike, and a scale for each expert."""
    return _expert_rows(model, share) * (model.hidden_size + 1)


def correction_elements(model: ModelConfig, share: RankShare) -> int:
    """Biases that count when experts are chosen."""
    wanted = model.experts is not None and model.experts.correction_bias
    return _expert_rows(model, share) if wanted else 0


def _expert_rows(model: ModelConfig, share: RankShare) -> int:
    layers = range(share.layers.start, share.layers.stop)
    count = model.experts.count if model.experts else 0
    return count * sum(model.has_experts(layer) for layer in layers)


def _attention(model: ModelConfig, share: RankShare) -> Iterator[Matrix]:
    heads = share.heads.size
    mixed = (heads + 2 * share.kv_heads.size) * model.head_dim
    yield Matrix(mixed, model.hidden_size, model.qkv_bias)
    adds_bias = model.output_bias and share.stage_rank == 0
    yield Matrix(model.hidden_size, heads * model.head_dim, adds_bias)


def _latent(model: ModelConfig, latent: LatentAttention, share: RankShare) -> Iterator[Matrix]:
    heads = share.heads.size
    queries = heads * model.head_dim
    if latent.q_rank is None:
        yield Matrix(queries, model.hidden_size)
    else:
        yield Matrix(latent.q_rank, model.hidden_size)
        yield Matrix(queries, latent.q_rank)
    yield Matrix(latent.cache_width, model.hidden_size)
    yield Matrix(model.hidden_size, heads * latent.value_dim)


def _feed_forward(model: ModelConfig, share: RankShare, layer: int) -> Iterator[Matrix]:
    experts = model.experts
    if experts is None or not model.has_experts(layer):
        yield from _gated(model, share.intermediate.size, share, bias=model.mlp_bias)
        return
    for _expert in range(share.experts.size):
        yield from _gated(model, share.expert_columns.size, share)
    if experts.shared_size:
        yield from _gated(model, share.shared_columns.size, share)


def _gated(
    model: ModelConfig, columns: int, share: RankShare, *, bias: bool = False
) -> Iterator[Matrix]:
    yield Matrix(2 * columns, model.hidden_size, bias)
    yield Matrix(model.hidden_size, columns, bias and share.stage_rank == 0)
