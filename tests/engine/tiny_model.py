"""Writes a tiny random Llama GGUF with a byte-level tokenizer: complete, and loaded in a moment."""

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np

HIDDEN = 96
INTERMEDIATE = 192
LAYERS = 3
HEADS = 6
KV_HEADS = 3
HEAD_DIM = 32
CONTEXT = 512
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w"]
PADDING = 5
"""Rows of the embedding beyond the tokenizer's last id."""
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def vocabulary() -> list[str]:
    """Special tokens, the 256 byte letters of GPT-2's alphabet, then the merged pieces."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(byte) for byte in printable]
    letters += [chr(256 + index) for index in range(256 - len(printable))]
    return [*SPECIAL, *letters, *(merge.replace(" ", "") for merge in MERGES)]


def write_tiny_model(
    path: Path,
    *,
    seed: int = 0,
    architecture: str = "llama",
    layers: int = LAYERS,
    tied: bool = True,
    leave_out: str | None = None,
    extra: str | None = None,
    reshape: str | None = None,
    rope_scaling: str | None = None,
    kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.Q8_0,
    declare: Callable[[gguf.GGUFWriter], None] | None = None,
) -> Path:
    """A model at `path`. `leave_out`, `extra` and `reshape` name a tensor to spoil; `declare` may
    add metadata."""
    tokens = vocabulary()
    writer = gguf.GGUFWriter(path, architecture)
    _write_shape(writer, layers)
    if rope_scaling is not None:
        writer.add_string(f"{architecture}.rope.scaling.type", rope_scaling)
    if declare is not None:
        declare(writer)
    write_tokenizer_metadata(writer)
    shapes = tensor_shapes(len(tokens) + PADDING, layers, tied)
    if extra is not None:
        shapes[extra] = (HIDDEN,)
    random = np.random.default_rng(seed)
    for name, shape in shapes.items():
        values = _values(random, name, shape)
        if name == leave_out:
            continue
        if name == reshape:
            values = values[: shape[0] // 2]
        _add(writer, name, values, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tensor_shapes(vocab: int, layers: int, tied: bool) -> dict[str, tuple[int, ...]]:
    queries, keys = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocab, HIDDEN)}
    for layer in range(layers):
        shapes |= {
            f"blk.{layer}.attn_norm.weight": (HIDDEN,),
            f"blk.{layer}.attn_q.weight": (queries, HIDDEN),
            f"blk.{layer}.attn_k.weight": (keys, HIDDEN),
            f"blk.{layer}.attn_v.weight": (keys, HIDDEN),
            f"blk.{layer}.attn_output.weight": (HIDDEN, queries),
            f"blk.{layer}.ffn_norm.weight": (HIDDEN,),
            f"blk.{layer}.ffn_gate.weight": (INTERMEDIATE, HIDDEN),
            f"blk.{layer}.ffn_up.weight": (INTERMEDIATE, HIDDEN),
            f"blk.{layer}.ffn_down.weight": (HIDDEN, INTERMEDIATE),
        }
    shapes["output_norm.weight"] = (HIDDEN,)
    if not tied:
        shapes["output.weight"] = (vocab, HIDDEN)
    return shapes


def _values(
    random: np.random.Generator, name: str, shape: tuple[int, ...]
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    if "norm" in name:
        return np.ones(shape, dtype=np.float32)
    values = random.standard_normal(shape, dtype=np.float32)
    return values * np.float32(shape[-1] ** -0.5)


def _add(
    writer: gguf.GGUFWriter,
    name: str,
    values: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]",
    kind: gguf.GGMLQuantizationType,
) -> None:
    if values.ndim == 1:
        writer.add_tensor(name, values)
    else:
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def _write_shape(writer: gguf.GGUFWriter, layers: int) -> None:
    writer.add_name("Tiny random")
    writer.add_license("apache-2.0")
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)


def write_tokenizer_metadata(writer: gguf.GGUFWriter) -> None:
    tokens = vocabulary()
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([control if token in SPECIAL else normal for token in tokens])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(CHAT_TEMPLATE)
