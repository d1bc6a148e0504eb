"""Builds grouped-query attention."""

import torch
from torch import Tensor

from engine.checkpoint.tensors import layer_tensor
from engine.kernels import Linear
from engine.layers import Attend, Attention, RMSNorm
from engine.models.blueprint import Blueprint
from engine.spans import Span


def build_attention(blueprint: Blueprint, layer: int) -> Attention:
    """This rank's heads of one layer."""
    model, cache, place = blueprint.model, blueprint.cache, blueprint.place(layer)
    return Attention(
        qkv=_qkv(blueprint, layer),
        output=_output(blueprint, layer),
        cache=cache,
        layer=place,
        heads=blueprint.share.heads.size,
        attend=Attend(cache, place, model.score_scale, model.attention_softcap),
        group=blueprint.mesh.tp,
        window=model.sliding_window if model.is_sliding(layer) else None,
        norms=_norms(blueprint, layer),
    )


def _qkv(blueprint: Blueprint, layer: int) -> Linear:
    weights, share, width = blueprint.weights, blueprint.share, blueprint.model.head_dim
    queries, keys = share.heads.times(width), share.kv_heads.times(width)
    spans = {"attn_q": queries, "attn_k": keys, "attn_v": keys}
    matrices = {part: weights.rows(layer, part, span) for part, span in spans.items()}
    joined = _joined(blueprint, matrices)
    if not blueprint.model.qkv_bias:
        return weights.pack(joined)
    biases = {part: weights.bias(layer, part, span) for part, span in spans.items()}
    return weights.pack(joined, _joined(blueprint, biases))


def _joined(blueprint: Blueprint, parts: dict[str, Tensor]) -> Tensor:
    width = blueprint.model.head_dim
    turned = Span(0, blueprint.model.rope.dimensions)
    queries = blueprint.weights.in_halves(parts["attn_q"], width, turned)
    keys = blueprint.weights.in_halves(parts["attn_k"], width, turned)
    return torch.cat([queries, keys, parts["attn_v"]])


def _output(blueprint: Blueprint, layer: int) -> Linear:
    weights, columns = blueprint.weights, blueprint.share.heads.times(blueprint.model.head_dim)
    bias = weights.bias(layer, "attn_output") if blueprint.model.output_bias else None
    if not blueprint.adds_bias:
        bias = None
    return weights.pack_columns(layer, "attn_output", columns, bias)


def _norms(blueprint: Blueprint, layer: int) -> tuple[RMSNorm, RMSNorm] | None:
    """Over one head each, so that every rank has them whole."""
    model, weights = blueprint.model, blueprint.weights
    if not model.qk_norm:
        return None
    names = [layer_tensor(layer, f"{part}.weight") for part in ("attn_q_norm", "attn_k_norm")]
    queries, keys = (weights.norm(name, model.rms_norm_eps) for name in names)
    return queries, keys
