"""Mixtures of experts as GGUF declares them."""

from collections.abc import Collection

from engine.checkpoint.declared import Declared
from engine.checkpoint.routing import check_groups
from engine.checkpoint.tensors import layer_tensor
from engine.errors import gettext_noop as _
from engine.model_config import Experts

_SOFTMAX, _SIGMOID = 1, 2


def read_experts(
    declared: Declared, prefix: str, layers: int, tensors: Collection[str]
) -> Experts | None:
    """None for a model without. `tensors` tell which layers are dense."""
    count = declared.count(f"{prefix}.expert_count", 0)
    if not count:
        return None
    chosen = declared.integer(f"{prefix}.expert_used_count")
    if chosen > count:
        raise declared.refuse(
            _("%(chosen)s of %(count)s experts cannot be chosen"), chosen=chosen, count=count
        )
    if prefix == "deepseek2":
        return _deepseek(declared, prefix, count, chosen, layers, tensors)
    inner = declared.integer(f"{prefix}.feed_forward_length") if prefix == "llama" else None
    return Experts(
        count=count,
        per_token=chosen,
        intermediate_size=declared.integer(f"{prefix}.expert_feed_forward_length", inner),
        renormalize=declared.flag(f"{prefix}.expert_weights_norm", True),
        scale=declared.number(f"{prefix}.expert_weights_scale", 1.0),
        dense_layers=_dense(layers, tensors),
    )


def _deepseek(
    declared: Declared,
    prefix: str,
    count: int,
    chosen: int,
    layers: int,
    tensors: Collection[str],
) -> Experts:
    gating = declared.count(f"{prefix}.expert_gating_func", 0) or _SOFTMAX
    if gating not in (_SOFTMAX, _SIGMOID):
        raise declared.refuse(
            _("expert gating function %(kind)s is not supported; 1 (softmax) and 2 (sigmoid) are"),
            kind=gating,
        )
    groups, top_groups = _groups(declared, prefix, count, chosen)
    inner = declared.integer(f"{prefix}.expert_feed_forward_length")
    dense = range(min(layers, declared.count(f"{prefix}.leading_dense_block_count", 0)))
    return Experts(
        count=count,
        per_token=chosen,
        intermediate_size=inner,
        scoring="sigmoid" if gating == _SIGMOID else "softmax",
        renormalize=declared.flag(f"{prefix}.expert_weights_norm", False),
        scale=declared.amount(f"{prefix}.expert_weights_scale", 1.0) or 1.0,
        groups=groups,
        top_groups=top_groups,
        group_score="top2" if gating == _SIGMOID else "max",
        correction_bias=any(name.endswith(".exp_probs_b.bias") for name in tensors),
        shared_size=inner * declared.count(f"{prefix}.expert_shared_count", 0),
        dense_layers=tuple(dense),
    )


def _groups(declared: Declared, prefix: str, count: int, chosen: int) -> tuple[int, int]:
    groups = declared.count(f"{prefix}.expert_group_count", 1) or 1
    top = declared.count(f"{prefix}.expert_group_used_count", groups) or groups
    check_groups(declared, count, chosen, groups, top)
    return groups, top


def _dense(layers: int, tensors: Collection[str]) -> tuple[int, ...]:
    bound = range(min(layers, len(tensors)))
    return tuple(
        layer for layer in bound if layer_tensor(layer, "ffn_gate_inp.weight") not in tensors
    )
