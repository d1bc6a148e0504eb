"""The tiny `transformers` models as GGUF files, by the conventions of llama.cpp's converter."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers

from tests.engine.tiny_model import write_tokenizer_metadata

_ARCHITECTURES = {
    "llama": "llama",
    "mistral": "llama",
    "mixtral": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe",
    "gemma3_text": "gemma3",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
}
Tensors = Iterator[tuple[str, torch.Tensor]]


def write_gguf(
    model: transformers.PreTrainedModel, path: Path, *, parts: int = 1, paired: bool = True
) -> Path:
    """`paired` stores DeepSeek's kv_b as keys and values, as newer converters do.

    With several `parts` the answer is the path of the first.
    """
    config = model.config
    arch = _ARCHITECTURES[config.model_type]
    tensors = list(_tensors(model, arch, paired))
    most = -(-len(tensors) // parts) if parts > 1 else 0
    writer = gguf.GGUFWriter(path, arch, split_max_tensors=most)
    _write_shape(writer, config)
    _write_rope(writer, config)
    if getattr(config, "kv_lora_rank", None):
        _write_latent(writer, config, paired)
    if hasattr(config, "num_experts_per_tok"):
        _write_experts(writer, config)
    write_tokenizer_metadata(writer)
    for name, tensor in tensors:
        writer.add_tensor(name, np.ascontiguousarray(tensor.detach().float().numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.with_name(f"{path.stem}-00001-of-{parts:05}.gguf") if parts > 1 else path


def _tensors(model: transformers.PreTrainedModel, arch: str, paired: bool) -> Tensors:
    config = model.config
    names = [
        gguf.get_tensor_name_map(_arch_id(kind), config.num_hidden_layers)
        for kind in (arch, "llama")  # some lists leave out a dense layer among experts
    ]
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if ".experts." in name:
            yield from _experts(name, tensor)
        elif paired and name.endswith("kv_b_proj.weight"):
            yield from _pair(name, tensor, config)
        elif name.endswith("e_score_correction_bias"):
            yield f"{_block(name)}.exp_probs_b.bias", tensor
        else:
            found = (known.get_name(name, try_suffixes=(".weight", ".bias")) for known in names)
            yield next(filter(None, found)), _converted(name, tensor, config, arch)
    yield from _rope_factors(model)


def _arch_id(arch: str) -> gguf.MODEL_ARCH:
    return next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == arch)


def _block(name: str) -> str:
    return f"blk.{name.split('.')[2]}"


def _converted(name: str, tensor: torch.Tensor, config: Any, arch: str) -> torch.Tensor:
    if arch == "gemma3" and "norm" in name:
        return tensor + 1
    if arch == "llama" and "q_proj" in name:
        return _interleaved(tensor, config.num_attention_heads)
    if arch == "llama" and "k_proj" in name:
        return _interleaved(tensor, config.num_key_value_heads)
    return tensor


def _interleaved(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    """Rotary pairs (i, i + d/2) of every head side by side."""
    halves = tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, -1)
    return halves.transpose(1, 2).reshape(tensor.shape)


def _experts(name: str, tensor: torch.Tensor) -> Tensors:
    block = _block(name)
    if name.endswith("down_proj"):
        yield f"{block}.ffn_down_exps.weight", tensor
        return
    gate, up = tensor.chunk(2, dim=1)
    yield f"{block}.ffn_gate_exps.weight", gate
    yield f"{block}.ffn_up_exps.weight", up


def _pair(name: str, tensor: torch.Tensor, config: Any) -> Tensors:
    heads = tensor.view(config.num_attention_heads, -1, config.kv_lora_rank)
    keys, values = heads[:, : config.qk_nope_head_dim], heads[:, config.qk_nope_head_dim :]
    yield f"{_block(name)}.attn_k_b.weight", keys.transpose(1, 2)
    yield f"{_block(name)}.attn_v_b.weight", values


def _rope_factors(model: transformers.PreTrainedModel) -> Tensors:
    rope = model.config.rope_parameters
    if rope.get("rope_type") == "longrope":
        yield "rope_factors_long.weight", torch.tensor(rope["long_factor"])
        yield "rope_factors_short.weight", torch.tensor(rope["short_factor"])
    if rope.get("rope_type") == "llama3":
        scaled = model.model.rotary_emb.inv_freq
        plain = rope["rope_theta"] ** -(torch.arange(len(scaled)) / len(scaled))
        yield "rope_freqs.weight", plain / scaled


def _write_shape(writer: gguf.GGUFWriter, config: Any) -> None:
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_name("Tiny random")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if not getattr(config, "kv_lora_rank", None):
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if getattr(config, "final_logit_softcapping", None):
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if getattr(config, "sliding_window", None):
        writer.add_sliding_window(config.sliding_window)
        kinds = getattr(config, "layer_types", None)
        if kinds:
            writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in kinds])


def _write_rope(writer: gguf.GGUFWriter, config: Any) -> None:
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    kind = rope["rope_type"]
    writer.add_rope_freq_base(rope["rope_theta"])
    if kind in ("linear", "yarn", "longrope"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind in ("yarn", "longrope"):
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "longrope":
        ratio = np.log(rope["factor"]) / np.log(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_attn_factors(float(np.sqrt(1 + ratio)))
    if rope.get("mscale_all_dim"):
        writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])


def _write_latent(writer: gguf.GGUFWriter, config: Any, paired: bool) -> None:
    key_length = config.qk_nope_head_dim + config.qk_rope_head_dim
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    if config.q_lora_rank is not None:
        writer.add_q_lora_rank(config.q_lora_rank)
    if not paired:
        writer.add_head_count_kv(config.num_attention_heads)
        writer.add_key_length(key_length)
        writer.add_value_length(config.v_head_dim)
        return
    writer.add_head_count_kv(1)
    writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
    writer.add_value_length(config.kv_lora_rank)
    writer.add_key_length_mla(key_length)
    writer.add_value_length_mla(config.v_head_dim)


def _write_experts(writer: gguf.GGUFWriter, config: Any) -> None:
    names = ("num_experts", "num_local_experts", "n_routed_experts")
    writer.add_expert_count(next(getattr(config, name) for name in names if hasattr(config, name)))
    writer.add_expert_used_count(config.num_experts_per_tok)
    if config.model_type == "mixtral":
        return
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if config.model_type == "qwen3_moe":
        return
    sigmoid = config.model_type == "deepseek_v3"
    kind = gguf.ExpertGatingFuncType
    writer.add_expert_gating_func(kind.SIGMOID if sigmoid else kind.SOFTMAX)
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    writer.add_expert_weights_norm(sigmoid and config.norm_topk_prob)
    writer.add_expert_group_count(config.n_group)
    writer.add_expert_group_used_count(config.topk_group)
