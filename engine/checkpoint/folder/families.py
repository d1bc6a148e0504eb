"""What each Hugging Face architecture adds to a common decoder, and what its class assumes.

Defaults are those of the `transformers` configuration classes: a config.json may leave them out.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from engine.checkpoint.declared import Declared
from engine.checkpoint.folder.experts import (
    deepseek_v2_experts,
    deepseek_v3_experts,
    mixtral_experts,
    qwen_experts,
)
from engine.checkpoint.folder.layers import sliding
from engine.checkpoint.folder.rope import (
    gemma_parameters,
    parameters,
    read_rope,
    score_temperature,
)
from engine.checkpoint.tensors import Layout
from engine.errors import gettext_noop as _
from engine.model_config import Experts, LatentAttention, ModelConfig

Adapt = Callable[[Declared, ModelConfig], ModelConfig]


def _halves(declared: Declared) -> Layout:
    return Layout()


def _gemma_layout(declared: Declared) -> Layout:
    return Layout(norm_offset=1.0)


def _deepseek_layout(declared: Declared) -> Layout:
    interleaved = declared.flag("rope_interleave", True)
    return Layout(rotary="interleaved" if interleaved else "halves")


class Family(msgspec.Struct, frozen=True):
    adapt: Adapt
    defaults: Mapping[str, Any]
    layout: Callable[[Declared], Layout] = _halves


def _changed(config: ModelConfig, changes: Mapping[str, object]) -> ModelConfig:
    return msgspec.structs.replace(config, **changes)


def _biases(declared: Declared) -> dict[str, object]:
    """Where one setting gives a bias to all four projections of attention."""
    bias = declared.flag("attention_bias", False)
    return {"qkv_bias": bias, "output_bias": bias}


def _llama(declared: Declared, config: ModelConfig) -> ModelConfig:
    rope = read_rope(parameters(declared), config.head_dim)
    mlp_bias = declared.flag("mlp_bias", False)
    return _changed(config, {**_biases(declared), "rope": rope, "mlp_bias": mlp_bias})


def _mistral(declared: Declared, config: ModelConfig) -> ModelConfig:
    rope = read_rope(parameters(declared), config.head_dim)
    return _changed(config, {**sliding(declared, lambda layer: True), "rope": rope})


def _mixtral(declared: Declared, config: ModelConfig) -> ModelConfig:
    return _changed(_mistral(declared, config), {"experts": mixtral_experts(declared)})


def _qwen_sliding(declared: Declared) -> dict[str, object]:
    first = declared.count("max_window_layers", 28)
    return sliding(declared, lambda layer: layer >= first)


def _qwen2(declared: Declared, config: ModelConfig) -> ModelConfig:
    rope = read_rope(parameters(declared), config.head_dim)
    return _changed(config, {**_qwen_sliding(declared), "rope": rope, "qkv_bias": True})


def _qwen3(declared: Declared, config: ModelConfig) -> ModelConfig:
    rope = read_rope(parameters(declared), config.head_dim)
    changes = {**_biases(declared), **_qwen_sliding(declared)}
    return _changed(config, {**changes, "rope": rope, "qk_norm": True})


def _qwen3_moe(declared: Declared, config: ModelConfig) -> ModelConfig:
    """Its window, where it has one, counts in every layer."""
    rope = read_rope(parameters(declared), config.head_dim)
    changes = {**_biases(declared), **sliding(declared, lambda layer: True)}
    experts = qwen_experts(declared)
    return _changed(config, {**changes, "rope": rope, "qk_norm": True, "experts": experts})


def _gemma3(declared: Declared, config: ModelConfig) -> ModelConfig:
    if declared.flag("use_bidirectional_attention", False):
        raise declared.refuse(_("attention in both directions is not supported"))
    full, local = gemma_parameters(declared)
    key = next(
        (key for key in ("sliding_window_pattern", "_sliding_window_pattern") if declared.get(key)),
        "sliding_window_pattern",
    )
    period = declared.integer(key, 6)
    changes = {**_biases(declared), **sliding(declared, lambda layer: (layer + 1) % period > 0)}
    return _changed(
        config,
        {
            **changes,
            "rope": read_rope(full, config.head_dim),
            "local_rope": read_rope(local, config.head_dim),
            "qk_norm": True,
            "post_norms": True,
            "embedding_scale": config.hidden_size**0.5,
            "attention_scale": declared.number("query_pre_attn_scalar") ** -0.5,
            "attention_softcap": _optional(declared, "attn_logit_softcapping"),
            "final_softcap": _optional(declared, "final_logit_softcapping"),
        },
    )


def _optional(declared: Declared, key: str) -> float | None:
    return None if declared.get(key) is None else declared.number(key)


def _deepseek(experts: Callable[[Declared], Experts | None]) -> Adapt:
    def adapt(declared: Declared, config: ModelConfig) -> ModelConfig:
        for key in ("attention_bias", "mlp_bias"):
            if declared.flag(key, False):
                raise declared.refuse(
                    _("%(key)s is set, which this engine does not compute"), key=key
                )
        latent = _latent(declared)
        width = latent.nope_dim + latent.rope_dim
        found = parameters(declared)
        return _changed(
            config,
            {
                "num_kv_heads": 1,
                "head_dim": width,
                "latent": latent,
                "rope": read_rope(found, latent.rope_dim),
                "attention_scale": width**-0.5 * score_temperature(found) ** 2,
                "experts": experts(declared),
            },
        )

    return adapt


def _latent(declared: Declared) -> LatentAttention:
    q_rank = declared.get("q_lora_rank")
    return LatentAttention(
        q_rank=None if q_rank is None else declared.integer("q_lora_rank"),
        kv_rank=declared.integer("kv_lora_rank"),
        nope_dim=declared.integer("qk_nope_head_dim"),
        rope_dim=declared.integer("qk_rope_head_dim"),
        value_dim=declared.integer("v_head_dim"),
    )


_UNTIED: dict[str, Any] = {"tie_word_embeddings": False, "rms_norm_eps": 1e-6}
_QWEN = {**_UNTIED, "num_key_value_heads": 32, "use_sliding_window": False, "sliding_window": 4096}
_QWEN_MOE = {
    **_QWEN,
    "num_key_value_heads": 4,
    "moe_intermediate_size": 768,
    "num_experts_per_tok": 8,
    "norm_topk_prob": False,
}
_GEMMA = {
    "vocab_size": 262_208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
}
_DEEPSEEK = {**_UNTIED, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
_DEEPSEEK_V2 = {
    **_DEEPSEEK,
    "q_lora_rank": 1536,
    "v_head_dim": 128,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "first_k_dense_replace": 0,
    "routed_scaling_factor": 1.0,
    "moe_intermediate_size": 1407,
}
_DEEPSEEK_V3 = {
    **_DEEPSEEK,
    "q_lora_rank": 1536,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "n_group": 8,
    "topk_group": 4,
    "first_k_dense_replace": 3,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "moe_intermediate_size": 2048,
}
FAMILIES: dict[str, Family] = {
    "llama": Family(_llama, _UNTIED),
    "mistral": Family(_mistral, {**_UNTIED, "num_key_value_heads": 8, "sliding_window": 4096}),
    "qwen2": Family(_qwen2, _QWEN),
    "qwen3": Family(_qwen3, {**_QWEN, "head_dim": 128}),
    "gemma3_text": Family(_gemma3, _GEMMA, _gemma_layout),
    "mixtral": Family(
        _mixtral,
        {
            **_UNTIED,
            "rms_norm_eps": 1e-5,
            "num_key_value_heads": 8,
            "num_experts_per_tok": 2,
            "rope_theta": 1_000_000.0,
        },
    ),
    "qwen3_moe": Family(_qwen3_moe, _QWEN_MOE),
    "deepseek_v2": Family(_deepseek(deepseek_v2_experts), _DEEPSEEK_V2, _deepseek_layout),
    "deepseek_v3": Family(_deepseek(deepseek_v3_experts), _DEEPSEEK_V3, _deepseek_layout),
}
"""By `model_type`."""
