"""The tensors of a model by the engine's own names, whatever format they are stored in.

Names are GGUF's, with one matrix for each expert (`blk.0.ffn_gate.3.weight`): readers split stacked
experts and rename other formats' tensors, so everything behind them knows one set of names and no
tensor has more than two dimensions.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from engine.model_config import Experts, LatentAttention, ModelConfig
from engine.shards import RankShare
from engine.spans import Span

EMBEDDING = "token_embd.weight"
FINAL_NORM = "output_norm.weight"
HEAD = "output.weight"

Shape = tuple[int, ...]


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """How a file stores what every reader has to know before computing."""

    rotary: Literal["halves", "interleaved"] = "halves"
    """Whether the pair (i, i + d/2) of a rotated head lies in rows i and i + d/2, or 2i and
    2i + 1."""
    norm_offset: float = 0.0
    """Added to every norm's weights when they are read (Gemma stores w of 1 + w)."""


def layer_tensor(layer: int, part: str) -> str:
    """`attn_q.weight` of layer 3 is `blk.3.attn_q.weight`."""
    return f"blk.{layer}.{part}"


def expert_part(part: str, expert: int) -> str:
    """Part name of one expert's matrix; `part` is `ffn_gate`, `ffn_up` or `ffn_down`."""
    return f"{part}.{expert}.weight"


def expected_shapes(config: ModelConfig) -> dict[str, Shape]:
    """Every tensor of the model with its (rows, columns)."""
    hidden = config.hidden_size
    shapes: dict[str, Shape] = {EMBEDDING: (config.vocab_size, hidden)}
    for layer in range(config.num_layers):
        for part, shape in layer_shapes(config, layer).items():
            shapes[layer_tensor(layer, part)] = shape
    shapes[FINAL_NORM] = (hidden,)
    if not config.tie_embeddings:
        shapes[HEAD] = (config.vocab_size, hidden)
    return shapes


def rank_tensors(config: ModelConfig, share: RankShare) -> set[str]:
    """Names of the tensors a rank must read, whole or in part."""
    names = {
        layer_tensor(layer, part)
        for layer in range(share.layers.start, share.layers.stop)
        for part in layer_shapes(config, layer, share.experts)
    }
    if share.first_stage:
        names.add(EMBEDDING)
    if share.last_stage:
        names |= {FINAL_NORM, EMBEDDING if config.tie_embeddings else HEAD}
    return names


def layer_shapes(config: ModelConfig, layer: int, held: Span | None = None) -> dict[str, Shape]:
    """Parts of one layer, without the `blk.N.` in front; of its experts only those of `held`, where
    it is given."""
    hidden = config.hidden_size
    parts: dict[str, Shape] = {"attn_norm.weight": (hidden,), "ffn_norm.weight": (hidden,)}
    if config.post_norms:
        parts["post_attention_norm.weight"] = (hidden,)
        parts["post_ffw_norm.weight"] = (hidden,)
    parts |= _latent_shapes(config, config.latent) if config.latent else _attention_shapes(config)
    if config.experts is not None and config.has_experts(layer):
        return parts | _expert_shapes(config, config.experts, held)
    return parts | _mlp_shapes(config)


def _attention_shapes(config: ModelConfig) -> dict[str, Shape]:
    hidden, width = config.hidden_size, config.head_dim
    queries, keys = config.num_heads * width, config.num_kv_heads * width
    parts: dict[str, Shape] = {
        "attn_q.weight": (queries, hidden),
        "attn_k.weight": (keys, hidden),
        "attn_v.weight": (keys, hidden),
        "attn_output.weight": (hidden, queries),
    }
    if config.qk_norm:
        parts |= {"attn_q_norm.weight": (width,), "attn_k_norm.weight": (width,)}
    if config.qkv_bias:
        parts |= {"attn_q.bias": (queries,), "attn_k.bias": (keys,), "attn_v.bias": (keys,)}
    if config.output_bias:
        parts["attn_output.bias"] = (hidden,)
    return parts


def _latent_shapes(config: ModelConfig, latent: LatentAttention) -> dict[str, Shape]:
    hidden, heads = config.hidden_size, config.num_heads
    queries = heads * config.head_dim
    parts: dict[str, Shape] = {
        "attn_kv_a_mqa.weight": (latent.cache_width, hidden),
        "attn_kv_a_norm.weight": (latent.kv_rank,),
        "attn_kv_b.weight": (heads * (latent.nope_dim + latent.value_dim), latent.kv_rank),
        "attn_output.weight": (hidden, heads * latent.value_dim),
    }
    if latent.q_rank is None:
        return parts | {"attn_q.weight": (queries, hidden)}
    return parts | {
        "attn_q_a.weight": (latent.q_rank, hidden),
        "attn_q_a_norm.weight": (latent.q_rank,),
        "attn_q_b.weight": (queries, latent.q_rank),
    }


def _mlp_shapes(config: ModelConfig) -> dict[str, Shape]:
    hidden, inner = config.hidden_size, config.intermediate_size
    parts: dict[str, Shape] = _gated("", hidden, inner)
    if config.mlp_bias:
        parts |= {"ffn_gate.bias": (inner,), "ffn_up.bias": (inner,), "ffn_down.bias": (hidden,)}
    return parts


def _expert_shapes(config: ModelConfig, experts: Experts, held: Span | None) -> dict[str, Shape]:
    hidden = config.hidden_size
    parts: dict[str, Shape] = {"ffn_gate_inp.weight": (experts.count, hidden)}
    if experts.correction_bias:
        parts["exp_probs_b.bias"] = (experts.count,)
    if experts.shared_size:
        parts |= _gated("_shexp", hidden, experts.shared_size)
    held = held or Span(0, experts.count)
    for expert in range(held.start, held.stop):
        parts |= _gated(f".{expert}", hidden, experts.intermediate_size)
    return parts


def _gated(suffix: str, hidden: int, inner: int) -> dict[str, Shape]:
    return {
        f"ffn_gate{suffix}.weight": (inner, hidden),
        f"ffn_up{suffix}.weight": (inner, hidden),
        f"ffn_down{suffix}.weight": (hidden, inner),
    }


def missing_layer(config: ModelConfig, tensors: Mapping[str, object]) -> int | None:
    """The first layer without a norm: what a truncated or miscounted file lacks."""
    for layer in range(config.num_layers):
        if layer_tensor(layer, "attn_norm.weight") not in tensors:
            return layer
    return None
