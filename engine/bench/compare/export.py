"""A GGUF model as a Hugging Face folder in float32, for peers that read nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models
from torch import Tensor

from engine.checkpoint import Checkpoint, TokenizerMetadata, open_checkpoint
from engine.checkpoint.tensors import EMBEDDING, FINAL_NORM, HEAD
from engine.errors import CheckpointError
from engine.loader import WeightSource
from engine.spans import Span
from engine.text.pretokenizers import RULES

_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_ENDS = {EMBEDDING: "model.embed_tokens", FINAL_NORM: "model.norm", HEAD: "lm_head"}
_CONTROL = 3


def export(source: Path, folder: Path) -> Path:
    """Write `folder`, where it is not there yet; raises CheckpointError for a model that is no
    plain Llama."""
    if (folder / "config.json").exists():
        return folder
    checkpoint = open_checkpoint(source)
    _check(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    _write_weights(checkpoint, folder / "model.safetensors")
    _write_tokenizer(checkpoint.tokenizer, folder)
    # Last, because it says that the others are whole.
    (folder / "config.json").write_text(json.dumps(_config(checkpoint), indent=2))
    return folder


def _check(checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    odd = config.qk_norm or config.qkv_bias or config.post_norms or config.experts or config.latent
    if config.architecture != "llama" or odd or config.rope.scaling is not None:
        raise CheckpointError(
            f"{checkpoint.path.name}: only plain Llama models can be compared with peers that read "
            "Hugging Face folders."
        )


def _config(checkpoint: Checkpoint) -> dict[str, Any]:
    model, tokenizer = checkpoint.config, checkpoint.tokenizer
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": model.hidden_size,
        "intermediate_size": model.intermediate_size,
        "num_hidden_layers": model.num_layers,
        "num_attention_heads": model.num_heads,
        "num_key_value_heads": model.num_kv_heads,
        "head_dim": model.head_dim,
        "vocab_size": model.vocab_size,
        "max_position_embeddings": model.context_length,
        "rms_norm_eps": model.rms_norm_eps,
        "rope_theta": model.rope.theta,
        "tie_word_embeddings": model.tie_embeddings,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": tokenizer.bos_id,
        "eos_token_id": tokenizer.eos_id,
        "pad_token_id": tokenizer.padding_id,
        "torch_dtype": "float32",
    }


def _tensors(checkpoint: Checkpoint, source: WeightSource) -> Iterator[tuple[str, Tensor]]:
    for name in checkpoint.tensors:
        yield _named(name), _values(checkpoint, source, name)


def _named(name: str) -> str:
    if name in _ENDS:
        return f"{_ENDS[name]}.weight"
    _blk, layer, part, _weight = name.split(".")
    return f"model.layers.{layer}.{_PARTS[part]}.weight"


def _values(checkpoint: Checkpoint, source: WeightSource, name: str) -> Tensor:
    shape = source.shape(name)
    if len(shape) == 1:
        return source.vector(name)
    rows = source.rows(name, Span(0, shape[0]))
    turned = name.endswith(("attn_q.weight", "attn_k.weight"))
    if turned and checkpoint.layout.rotary == "interleaved":
        # Pairs that GGUF keeps side by side lie half a head apart there.
        half = checkpoint.config.head_dim // 2
        rows = rows.view(-1, half, 2, shape[1]).transpose(1, 2).reshape(shape)
    return rows


def _write_weights(checkpoint: Checkpoint, path: Path) -> None:
    """Format: github.com/huggingface/safetensors. One tensor at a time is in memory."""
    names = set(checkpoint.tensors)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, info in checkpoint.tensors.items():
        end = offset + 4 * info.elements
        header[_named(name)] = {
            "dtype": "F32",
            "shape": list(info.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("wb") as out, WeightSource(checkpoint, names, _silent) as source:
        out.write(len(raw).to_bytes(8, "little") + raw)
        for _name, values in _tensors(checkpoint, source):
            out.write(values.contiguous().to(torch.float32).numpy().tobytes())
        source.finish()


def _silent(_fraction: float, _what: str) -> None:
    """Nobody watches."""


def _write_tokenizer(known: TokenizerMetadata, folder: Path) -> None:
    if known.model != "gpt2" or known.pre not in RULES:
        raise CheckpointError("Only models with byte-level tokens can be compared with such peers.")
    ids = {token: index for index, token in enumerate(known.tokens)}
    left_right = [merge.partition(" ") for merge in known.merges]
    made = Tokenizer(models.BPE(vocab=ids, merges=[(left, right) for left, _, right in left_right]))
    made.pre_tokenizer = RULES[known.pre].pre_tokenizer()
    made.decoder = decoders.ByteLevel()
    kinds = zip(known.tokens, known.token_types, strict=True)
    special = [token for token, kind in kinds if kind == _CONTROL]
    made.add_special_tokens([AddedToken(it, special=True, normalized=False) for it in special])
    made.save(str(folder / "tokenizer.json"))
    names = {"bos_token": known.bos_id, "eos_token": known.eos_id, "pad_token": known.padding_id}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": known.chat_template,
        **{key: known.tokens[index] for key, index in names.items() if index is not None},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, ensure_ascii=False))
