"""Builds multi-head latent attention."""

from collections.abc import Callable

from torch import Tensor

from engine.checkpoint.tensors import layer_tensor
from engine.kernels import Linear
from engine.layers import Attend, RMSNorm
from engine.layers.latent import AbsorbedHeads, LatentAttention, LowRankQuery
from engine.model_config import LatentAttention as Shape
from engine.models.blueprint import Blueprint
from engine.models.decoder import AttentionPart
from engine.spans import Span

_NORM_EPS = 1e-6
"""Of the norms inside: fixed in the reference code, whatever the model's other norms use."""


def build_latent_attention(blueprint: Blueprint, layer: int) -> AttentionPart:
    """This rank's heads of one layer; every rank caches the one latent."""
    model, share, weights = blueprint.model, blueprint.share, blueprint.weights
    latent = _shape(blueprint)
    place = blueprint.place(layer)
    columns = share.heads.times(latent.value_dim)
    return LatentAttention(
        query=_query(blueprint, layer, latent),
        compress=_compress(blueprint, layer, latent),
        norm=_norm(blueprint, layer, "attn_kv_a_norm"),
        heads=_heads(blueprint, layer, latent),
        output=weights.pack(weights.columns(layer, "attn_output", columns)),
        cache=blueprint.cache,
        layer=place,
        attend=Attend(blueprint.cache, place, model.score_scale),
        group=blueprint.mesh.tp,
    )


def _shape(blueprint: Blueprint) -> Shape:
    if blueprint.model.latent is None:
        raise ValueError(f"{blueprint.model.architecture} has no latent attention.")
    return blueprint.model.latent


def _query(blueprint: Blueprint, layer: int, latent: Shape) -> Callable[[Tensor], Tensor]:
    weights = blueprint.weights
    if latent.q_rank is None:
        return _query_heads(blueprint, layer, latent, "attn_q")
    return LowRankQuery(
        down=weights.pack(weights.rows(layer, "attn_q_a", Span(0, latent.q_rank))),
        norm=_norm(blueprint, layer, "attn_q_a_norm"),
        up=_query_heads(blueprint, layer, latent, "attn_q_b"),
    )


def _query_heads(blueprint: Blueprint, layer: int, latent: Shape, part: str) -> Linear:
    weights, width = blueprint.weights, blueprint.model.head_dim
    rows = weights.rows(layer, part, blueprint.share.heads.times(width))
    return weights.pack(weights.in_halves(rows, width, Span(latent.nope_dim, width)))


def _compress(blueprint: Blueprint, layer: int, latent: Shape) -> Linear:
    weights, width = blueprint.weights, latent.cache_width
    rows = weights.rows(layer, "attn_kv_a_mqa", Span(0, width))
    return weights.pack(weights.in_halves(rows, width, Span(latent.kv_rank, width)))


def _heads(blueprint: Blueprint, layer: int, latent: Shape) -> AbsorbedHeads:
    weights, heads = blueprint.weights, blueprint.share.heads
    rows = heads.times(latent.nope_dim + latent.value_dim)
    matrix = weights.rows(layer, "attn_kv_b", rows)
    absorbed = AbsorbedHeads(matrix, heads.size, latent.nope_dim)
    weights.nbytes += absorbed.nbytes
    return absorbed


def _norm(blueprint: Blueprint, layer: int, part: str) -> RMSNorm:
    return blueprint.weights.norm(layer_tensor(layer, f"{part}.weight"), _NORM_EPS)
