"""config.json as the engine's configuration; what would change the maths unseen is refused."""

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.checkpoint.complete import check_heads
from engine.checkpoint.declared import Declared
from engine.checkpoint.folder.families import FAMILIES
from engine.checkpoint.folder.layers import check_kinds, layer_count
from engine.checkpoint.tensors import Layout
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.model_config import Activation, ModelConfig, Rope

_ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
}
_FOREIGN = ("quantization_config", "compression_config", "attention_chunk_size", "clip_qkv")
"""Settings that change what is computed, whatever they say."""


class FolderConfig(msgspec.Struct, frozen=True):
    model: ModelConfig
    layout: Layout
    extra_layers: int
    """Stored behind the decoder's own, to predict further tokens; not computed."""


def read_config(name: str, raw: Mapping[str, Any]) -> FolderConfig:
    """Raises CheckpointError; `name` is the folder's, for messages."""
    kind = Declared(name, raw).text("model_type")
    if kind == "gemma3":
        raw = _text_part(name, raw)
        kind = "gemma3_text"
    family = FAMILIES.get(kind)
    if family is None:
        raise CheckpointError(
            _(
                "%(file)s: architecture %(architecture)r is not supported; supported: "
                "%(supported)s."
            ),
            file=name,
            architecture=kind[:60],
            supported=", ".join(FAMILIES),
        )
    declared = Declared(name, {**family.defaults, **raw})
    _refuse_foreign(declared)
    check_kinds(declared)
    config = family.adapt(declared, _common(declared, kind))
    check_heads(name, config)
    return FolderConfig(
        model=config,
        layout=family.layout(declared),
        extra_layers=min(declared.count("num_nextn_predict_layers", 0), 100),
    )


def _text_part(name: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The decoder of a model that also has an image encoder; its tensors tell the rest."""
    inner = raw.get("text_config")
    if not isinstance(inner, dict):
        raise Declared(name, raw).refuse(_("%(key)r should be an object"), key="text_config")
    outer = {
        key: raw[key]
        for key in ("quantization_config", "tie_word_embeddings", "bos_token_id", "eos_token_id")
        if key in raw
    }
    return {**outer, **inner}


def _common(declared: Declared, kind: str) -> ModelConfig:
    heads = declared.integer("num_attention_heads")
    hidden = declared.integer("hidden_size")
    head_dim = declared.integer("head_dim", hidden // heads or None)
    return ModelConfig(
        architecture=kind.removesuffix("_text"),
        hidden_size=hidden,
        intermediate_size=declared.integer("intermediate_size"),
        num_layers=layer_count(declared),
        num_heads=heads,
        num_kv_heads=declared.integer("num_key_value_heads", heads),
        head_dim=head_dim,
        vocab_size=declared.integer("vocab_size"),
        context_length=declared.integer("max_position_embeddings"),
        rope=Rope(theta=1.0, dimensions=head_dim),  # each family reads its own
        rms_norm_eps=declared.number("rms_norm_eps"),
        tie_embeddings=declared.flag("tie_word_embeddings"),
        activation=_activation(declared),
    )


def _activation(declared: Declared) -> Activation:
    word = declared.text("hidden_activation", declared.text("hidden_act", "silu"))
    if word not in _ACTIVATIONS:
        raise declared.refuse(
            _("activation %(word)r is not supported; supported: %(known)s"),
            word=word[:60],
            known=", ".join(_ACTIVATIONS),
        )
    return _ACTIVATIONS[word]


def _refuse_foreign(declared: Declared) -> None:
    for key in _FOREIGN:
        if declared.get(key) is None:
            continue
        if key == "quantization_config":
            method = declared.get(key)
            word = method.get("quant_method") if isinstance(method, dict) else method
            raise declared.refuse(
                _(
                    "its weights are quantised with %(method)s, which is not supported; use the "
                    "model's bf16 checkpoint, or a GGUF file of it"
                ),
                method=repr(word)[:60],
            )
        raise declared.refuse(_("%(key)s is set, which this engine does not compute"), key=key)
