"""Tiny random `transformers` models, one of every architecture, saved as Hugging Face folders."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tests.engine.tiny_model import CHAT_TEMPLATE, MERGES, SPECIAL, vocabulary

VOCABULARY = 300
CONTEXT = 256
_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
_LATENT: dict[str, Any] = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "n_group": 4,
    "topk_group": 2,
}
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
_DEEP_YARN = {**_YARN, "mscale": 1.0, "mscale_all_dim": 0.8, "beta_fast": 32, "beta_slow": 1}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_LONGROPE = {
    "rope_type": "longrope",
    "short_factor": [1.0 + 0.05 * index for index in range(8)],
    "long_factor": [1.0 + 0.5 * index for index in range(8)],
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
_GEMMA_ROPE = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
}


def _rope(scaling: Mapping[str, Any], theta: float = 10_000.0) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": theta, **scaling}}


_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True}),
    "llama-linear": ("Llama", _rope({"rope_type": "linear", "factor": 4.0})),
    "llama-dynamic": ("Llama", _rope({"rope_type": "dynamic", "factor": 4.0})),
    "llama-yarn": ("Llama", _rope(_YARN)),
    "llama-llama3": ("Llama", {**_rope(_LLAMA3, 500_000.0), "head_dim": 32}),
    "llama-longrope": ("Llama", _rope(_LONGROPE)),
    "mistral": ("Mistral", {"sliding_window": 24}),
    "qwen2": ("Qwen2", {"use_sliding_window": True, "sliding_window": 24, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {"head_dim": 32, "attention_bias": True, **_rope(_YARN, 1_000_000.0)}),
    "gemma3": (
        "Gemma3",
        {
            "num_hidden_layers": 4,
            "head_dim": 32,
            "sliding_window": 24,
            "query_pre_attn_scalar": 24,
            "final_logit_softcapping": 30.0,
            "tie_word_embeddings": True,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "rope_parameters": _GEMMA_ROPE,
        },
    ),
    "mixtral": (
        "Mixtral",
        {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 24},
    ),
    "qwen3_moe": (
        "Qwen3Moe",
        {
            "head_dim": 32,
            "num_experts": 8,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 32,
            "mlp_only_layers": [1],
            "norm_topk_prob": True,
        },
    ),
    "deepseek_v2": (
        "DeepseekV2",
        {
            **_LATENT,
            "q_lora_rank": None,
            "topk_method": "group_limited_greedy",
            "n_shared_experts": 2,
            "routed_scaling_factor": 1.5,
        },
    ),
    "deepseek_v3": (
        "DeepseekV3",
        {**_LATENT, "q_lora_rank": 24, "n_shared_experts": 1, **_rope(_DEEP_YARN)},
    ),
}
ARCHITECTURES = tuple(_MODELS)


def hf_config(name: str, **changes: Any) -> transformers.PretrainedConfig:
    """Config of one architecture; `changes` replace its settings, e.g. num_hidden_layers=8."""
    family, settings = _MODELS[name]
    kind = f"{family}TextConfig" if family == "Gemma3" else f"{family}Config"
    made: transformers.PretrainedConfig = getattr(transformers, kind)(
        **{**_SIZES, **settings, **changes}
    )
    made._attn_implementation = "eager"
    return made


def write_hf_model(
    folder: Path,
    name: str,
    *,
    seed: int = 0,
    shard: str = "100KB",
    dtype: torch.dtype = torch.float32,
    **changes: Any,
) -> transformers.PreTrainedModel:
    """Save a model with random weights, biases and norms in several shards, with a tokenizer.

    Answers the model itself, in evaluation mode with eager attention and `dtype` weights.
    """
    family = _MODELS[name][0]
    model = getattr(transformers, f"{family}ForCausalLM")(hf_config(name, **changes))
    _randomise(model, seed)
    model = model.to(dtype).eval()
    model.save_pretrained(folder, max_shard_size=shard)
    write_tokenizer(folder)
    checked: transformers.PreTrainedModel = model
    return checked


@torch.no_grad()
def _randomise(model: torch.nn.Module, seed: int) -> None:
    """Values that matter everywhere: the defaults leave norms at 1, biases at 0, logits at 0."""
    generator = torch.Generator().manual_seed(seed)
    plain_norms = not type(model).__name__.startswith("Gemma")
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if "inv_freq" in name or "embed_scale" in name:
            continue
        values = torch.randn(tensor.shape, generator=generator)
        if tensor.ndim > 1:
            tensor.copy_(values * tensor.shape[-1] ** -0.5)
        elif "norm" in name:
            tensor.copy_(0.1 * values + (1.0 if plain_norms else 0.0))
        else:
            tensor.copy_(0.1 * values)


def write_tokenizer(folder: Path) -> None:
    """A byte-level tokenizer with the tiny GGUF's tokens, in the files that models come with."""
    tokens = {token: index for index, token in enumerate(vocabulary())}
    merges = [(left, right) for left, right in (merge.split(" ") for merge in MERGES)]
    tokenizer = Tokenizer(models.BPE(vocab=tokens, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "unk_token": "<|endoftext|>",
        "pad_token": "<|im_end|>",
        "add_bos_token": False,
        "model_max_length": CONTEXT,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    generation = {"bos_token_id": 1, "eos_token_id": [2, 0], "pad_token_id": 2}
    (folder / "generation_config.json").write_text(json.dumps(generation))
