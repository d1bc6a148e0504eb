"""The decoder that a GGUF file of each supported architecture declares."""

from collections.abc import Callable, Mapping

import msgspec

from engine.checkpoint.complete import check_heads
from engine.checkpoint.declared import Declared
from engine.checkpoint.gguf.experts import read_experts
from engine.checkpoint.gguf.foreign import refuse_foreign
from engine.checkpoint.gguf.rope import local_rope, read_rope, yarn_temperature
from engine.checkpoint.stored import Stored, TensorInfo
from engine.checkpoint.tensors import EMBEDDING, HEAD, Layout, layer_tensor
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.model_config import LatentAttention, ModelConfig

_GEMMA_PATTERN = 6
_GEMMA_27B_LAYERS = 62


class Declaration(msgspec.Struct, frozen=True):
    """What a reader of an architecture looks at."""

    declared: Declared
    prefix: str
    stored: Mapping[str, TensorInfo]
    """As the file names them."""
    tensors: Mapping[str, Stored]

    def key(self, name: str) -> str:
        return f"{self.prefix}.{name}"

    def has(self, part: str) -> bool:
        return layer_tensor(0, part) in self.tensors


def _llama(told: Declaration, config: ModelConfig) -> ModelConfig:
    """Also Mistral and Mixtral. A declared window counts in every layer."""
    changes = _biases(told)
    if config.sliding_window is not None:
        changes["sliding_layers"] = _sliding(told, config, 1)
    return msgspec.structs.replace(config, **changes)


def _qwen2(told: Declaration, config: ModelConfig) -> ModelConfig:
    return msgspec.structs.replace(config, qkv_bias=True, sliding_layers=_sliding(told, config))


def _qwen3(told: Declaration, config: ModelConfig) -> ModelConfig:
    return msgspec.structs.replace(
        config, qk_norm=True, sliding_layers=_sliding(told, config), **_biases(told)
    )


def _gemma3(told: Declaration, config: ModelConfig) -> ModelConfig:
    """The largest model scales scores by the head width that hidden_size would give."""
    large = config.num_layers == _GEMMA_27B_LAYERS
    scale = (config.hidden_size / config.num_heads) ** -0.5 if large else config.score_scale
    return msgspec.structs.replace(
        config,
        activation="gelu_tanh",
        qk_norm=True,
        post_norms=True,
        embedding_scale=config.hidden_size**0.5,
        attention_scale=config.attention_scale or scale,
        sliding_layers=_sliding(told, config, _GEMMA_PATTERN),
        local_rope=local_rope(told.declared, told.prefix, config.rope),
    )


def _deepseek2(told: Declaration, config: ModelConfig) -> ModelConfig:
    declared = told.declared
    latent = _latent(told)
    head_dim = latent.nope_dim + latent.rope_dim
    temperature = yarn_temperature(declared, told.prefix)
    return msgspec.structs.replace(
        config,
        num_kv_heads=1,
        head_dim=head_dim,
        attention_scale=head_dim**-0.5 * temperature**2,
        latent=latent,
        rope=read_rope(declared, told.prefix, latent.rope_dim, told.stored),
    )


_READERS: dict[str, Callable[[Declaration, ModelConfig], ModelConfig]] = {
    "llama": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3moe": _qwen3,
    "gemma3": _gemma3,
    "deepseek2": _deepseek2,
}
SUPPORTED_ARCHITECTURES = tuple(_READERS)
_INTERLEAVED = ("llama", "deepseek2")
"""Where the converter, or the model itself, keeps rotary pairs in neighbouring rows."""


def read_config(
    declared: Declared, stored: Mapping[str, TensorInfo], tensors: Mapping[str, Stored]
) -> tuple[ModelConfig, Layout]:
    """Refuses what the engine would compute wrongly."""
    architecture = declared.text("general.architecture")
    reader = _READERS.get(architecture)
    if reader is None:
        raise CheckpointError(
            _(
                "%(file)s: architecture %(architecture)r is not supported; supported: "
                "%(supported)s."
            ),
            file=declared.name,
            architecture=architecture,
            supported=", ".join(SUPPORTED_ARCHITECTURES),
        )
    refuse_foreign(declared, architecture)
    told = Declaration(declared, architecture, stored, tensors)
    config = reader(told, _common(told))
    check_heads(declared.name, config)
    interleaved = architecture in _INTERLEAVED
    return config, Layout(rotary="interleaved" if interleaved else "halves")


def _common(told: Declaration) -> ModelConfig:
    declared, key = told.declared, told.key
    heads = declared.integer(key("attention.head_count"))
    hidden = declared.integer(key("embedding_length"))
    head_dim = declared.integer(key("attention.key_length"), hidden // heads or None)
    layers = declared.integer(key("block_count"))
    latent = told.prefix == "deepseek2"
    if not latent and declared.integer(key("attention.value_length"), head_dim) != head_dim:
        raise declared.refuse(_("values and keys of different width are not supported"))
    return ModelConfig(
        architecture=told.prefix,
        hidden_size=hidden,
        intermediate_size=_dense_width(told),
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=declared.integer(key("attention.head_count_kv"), heads),
        head_dim=head_dim,
        vocab_size=_vocabulary(told),
        context_length=declared.integer(key("context_length")),
        rope=read_rope(declared, told.prefix, _rotated_width(told, head_dim), told.stored),
        rms_norm_eps=declared.number(key("attention.layer_norm_rms_epsilon")),
        tie_embeddings=HEAD not in told.tensors,
        attention_scale=_optional(told, "attention.scale"),
        attention_softcap=_optional(told, "attn_logit_softcapping"),
        final_softcap=_optional(told, "final_logit_softcapping"),
        sliding_window=declared.count(key("attention.sliding_window"), 0) or None,
        experts=read_experts(declared, told.prefix, layers, told.tensors),
    )


def _rotated_width(told: Declaration, head_dim: int) -> int:
    if told.prefix != "deepseek2":
        return head_dim
    return told.declared.integer(told.key("rope.dimension_count"))


def _dense_width(told: Declaration) -> int:
    """A model whose every layer has experts may declare no width for the others."""
    only_experts = told.declared.get(told.key("expert_feed_forward_length"))
    default = only_experts if isinstance(only_experts, int) else None
    return told.declared.integer(told.key("feed_forward_length"), default)


def _optional(told: Declaration, name: str) -> float | None:
    if told.declared.get(told.key(name)) is None:
        return None
    return told.declared.amount(told.key(name)) or None


def _biases(told: Declaration) -> dict[str, object]:
    """Biases that an architecture may have; the first layer tells."""
    return {
        "qkv_bias": told.has("attn_q.bias"),
        "output_bias": told.has("attn_output.bias"),
        "mlp_bias": told.has("ffn_gate.bias"),
    }


def _sliding(told: Declaration, config: ModelConfig, pattern: int = 0) -> tuple[int, ...]:
    """Layers with a window. The declared pattern is one flag a layer, or n: every n-th has none;
    1 stands for a window everywhere, and without any pattern none may be declared."""
    if config.sliding_window is None:
        return ()
    layers = range(min(config.num_layers, len(told.tensors)))
    key = told.key("attention.sliding_window_pattern")
    given = told.declared.get(key)
    if isinstance(given, list) and len(given) == config.num_layers:
        return tuple(layer for layer in layers if given[layer] in (True, 1))
    period = told.declared.count(key, pattern)
    if not period:
        raise told.declared.refuse(
            _("a sliding window without a pattern that says which layers use it is not supported")
        )
    return tuple(layer for layer in layers if period == 1 or (layer + 1) % period)


def _latent(told: Declaration) -> LatentAttention:
    """Newer files declare the widths of the compressed form besides, under the plain keys."""
    declared, key = told.declared, told.key
    keys = declared.integer(
        key("attention.key_length_mla"), declared.integer(key("attention.key_length"))
    )
    values = declared.integer(
        key("attention.value_length_mla"), declared.integer(key("attention.value_length"))
    )
    rotated = declared.integer(key("rope.dimension_count"))
    if rotated >= keys:
        raise declared.refuse(
            _("rotary positions over %(rotated)s of %(head_dim)s dimensions are not possible"),
            rotated=rotated,
            head_dim=keys,
        )
    return LatentAttention(
        q_rank=declared.count(key("attention.q_lora_rank"), 0) or None,
        kv_rank=declared.integer(key("attention.kv_lora_rank")),
        nope_dim=keys - rotated,
        rope_dim=rotated,
        value_dim=values,
    )


def _vocabulary(told: Declaration) -> int:
    """Rows of the embedding; the tokenizer may know fewer tokens."""
    embedding = told.tensors.get(EMBEDDING)
    if embedding is None:
        raise CheckpointError(
            _("%(file)s: tensor %(tensor)r is missing."), file=told.declared.name, tensor=EMBEDDING
        )
    return embedding.shape[0]
