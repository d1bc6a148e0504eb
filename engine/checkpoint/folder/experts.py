"""Mixtures of experts as config.json declares them."""

from engine.checkpoint.declared import Declared
from engine.checkpoint.folder.layers import layer_count
from engine.checkpoint.routing import check_groups
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.model_config import Experts


def mixtral_experts(declared: Declared) -> Experts:
    count, chosen = _counts(declared, "num_local_experts", "num_experts")
    return Experts(
        count=count, per_token=chosen, intermediate_size=declared.integer("intermediate_size")
    )


def qwen_experts(declared: Declared) -> Experts:
    count, chosen = _counts(declared, "num_experts", "num_local_experts")
    return Experts(
        count=count,
        per_token=chosen,
        intermediate_size=declared.integer("moe_intermediate_size"),
        renormalize=declared.flag("norm_topk_prob"),
        dense_layers=_qwen_dense(declared),
    )


def deepseek_v2_experts(declared: Declared) -> Experts | None:
    """Scores are softmax over all experts; groups count by their best expert."""
    if _routed(declared) == 0:
        return None
    if declared.flag("norm_topk_prob", False):
        raise declared.refuse(
            _("norm_topk_prob=true is not supported for this architecture, only false is")
        )
    method = declared.text("topk_method", "greedy")
    if method not in ("greedy", "group_limited_greedy"):
        raise _unknown(declared, "topk_method", method)
    _check_word(declared, "scoring_func", "softmax")
    return _deepseek(
        declared,
        grouped=method == "group_limited_greedy",
        scoring="softmax",
        renormalize=False,
    )


def deepseek_v3_experts(declared: Declared) -> Experts | None:
    """Scores are sigmoid; groups count by their best two experts; a bias helps to choose."""
    if _routed(declared) == 0:
        return None
    _check_word(declared, "topk_method", "noaux_tc")
    _check_word(declared, "scoring_func", "sigmoid")
    return _deepseek(
        declared,
        grouped=True,
        scoring="sigmoid",
        renormalize=declared.flag("norm_topk_prob"),
    )


def _deepseek(declared: Declared, *, grouped: bool, scoring: str, renormalize: bool) -> Experts:
    count, chosen = _counts(declared, "n_routed_experts", "num_local_experts")
    if declared.count("moe_layer_freq", 1) != 1:
        raise declared.refuse(_("moe_layer_freq other than 1 is not supported"))
    groups, top = 1, 1
    if grouped:
        groups, top = declared.integer("n_group", 1), declared.integer("topk_group", 1)
        check_groups(declared, count, chosen, groups, top)
    inner = declared.integer("moe_intermediate_size")
    dense = min(layer_count(declared), declared.count("first_k_dense_replace"))
    sigmoid = scoring == "sigmoid"
    return Experts(
        count=count,
        per_token=chosen,
        intermediate_size=inner,
        scoring="sigmoid" if sigmoid else "softmax",
        renormalize=renormalize,
        scale=declared.number("routed_scaling_factor"),
        groups=groups,
        top_groups=top,
        group_score="top2" if sigmoid else "max",
        correction_bias=sigmoid,
        shared_size=inner * declared.count("n_shared_experts", 0),
        dense_layers=tuple(range(dense)),
    )


def _routed(declared: Declared) -> int:
    return declared.count("n_routed_experts", declared.count("num_local_experts", 0))


def _counts(declared: Declared, *keys: str) -> tuple[int, int]:
    """Experts and how many of them a token takes; the two versions name the first differently."""
    key = next((key for key in keys if declared.get(key) is not None), keys[0])
    count, chosen = declared.integer(key), declared.integer("num_experts_per_tok")
    if chosen > count:
        raise declared.refuse(
            _("%(chosen)s of %(count)s experts cannot be chosen"), chosen=chosen, count=count
        )
    return count, chosen


def _qwen_dense(declared: Declared) -> tuple[int, ...]:
    """Layers that are listed, and those between every decoder_sparse_step-th."""
    listed = declared.get("mlp_only_layers") or []
    step = declared.integer("decoder_sparse_step", 1)
    if not isinstance(listed, list) or not all(type(layer) is int for layer in listed):
        raise declared.refuse(_("%(key)r should be a list of layers"), key="mlp_only_layers")
    chosen = set(listed)
    layers = range(layer_count(declared))
    return tuple(layer for layer in layers if layer in chosen or (layer + 1) % step)


def _check_word(declared: Declared, key: str, known: str) -> None:
    word = declared.text(key, known)
    if word != known:
        raise _unknown(declared, key, word)


def _unknown(declared: Declared, key: str, word: str) -> CheckpointError:
    return declared.refuse(
        _("%(key)s %(word)r is not supported for this architecture"), key=key, word=word[:60]
    )
