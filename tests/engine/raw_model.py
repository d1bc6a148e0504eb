"""Writes a Llama GGUF of random blocks in any format, of any size: for loading, not for meaning."""

from pathlib import Path

import gguf
import numpy as np

Kind = gguf.GGMLQuantizationType
Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

_HALVES = {
    Kind.F16: [0],
    Kind.Q4_0: [0],
    Kind.Q4_1: [0, 2],
    Kind.Q5_0: [0],
    Kind.Q5_1: [0, 2],
    Kind.Q8_0: [0],
    Kind.IQ4_NL: [0],
    Kind.Q2_K: [80, 82],
    Kind.Q3_K: [108],
    Kind.Q4_K: [0, 2],
    Kind.Q5_K: [0, 2],
    Kind.Q6_K: [208],
}
"""Where a block keeps its float16 numbers: random bytes there could be no number at all."""
_POOL = 1024


def random_blocks(random: np.random.Generator, kind: Kind, count: int) -> Bytes:
    """(count, block bytes): random but for the scales, which are small and of either sign."""
    _, size = gguf.GGML_QUANT_SIZES[kind]
    if kind in (Kind.F32, Kind.BF16):
        values = random.standard_normal(count, dtype=np.float32)
        whole = values.view(np.uint8).reshape(count, 4)
        return whole if kind == Kind.F32 else np.ascontiguousarray(whole[:, 2:])
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for at in _HALVES[kind]:
        halves = random.standard_normal(count).astype(np.float16) / np.float16(64)
        blocks[:, at : at + 2] = halves.view(np.uint8).reshape(count, 2)
    return blocks


def write_raw_model(
    path: Path,
    *,
    kind: Kind = Kind.Q4_0,
    hidden: int = 256,
    intermediate: int = 512,
    layers: int = 1,
    heads: int = 4,
    kv_heads: int = 2,
    vocab: int = 64,
    tied: bool = True,
) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    _write_shape(writer, hidden, intermediate, layers, heads, kv_heads)
    writer.add_token_list([f"t{index}" for index in range(vocab)])
    writer.add_vocab_size(vocab)
    random = np.random.default_rng(0)
    keys = hidden // heads * kv_heads
    _add_matrix(writer, random, "token_embd.weight", (vocab, hidden), kind)
    for layer in range(layers):
        for name, shape in {
            "attn_q": (hidden, hidden),
            "attn_k": (keys, hidden),
            "attn_v": (keys, hidden),
            "attn_output": (hidden, hidden),
            "ffn_gate": (intermediate, hidden),
            "ffn_up": (intermediate, hidden),
            "ffn_down": (hidden, intermediate),
        }.items():
            _add_matrix(writer, random, f"blk.{layer}.{name}.weight", shape, kind)
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(hidden, dtype=np.float32))
    writer.add_tensor("output_norm.weight", np.ones(hidden, dtype=np.float32))
    if not tied:
        _add_matrix(writer, random, "output.weight", (vocab, hidden), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_matrix(
    writer: gguf.GGUFWriter,
    random: np.random.Generator,
    name: str,
    shape: tuple[int, int],
    kind: Kind,
) -> None:
    width, size = gguf.GGML_QUANT_SIZES[kind]
    count = shape[0] * shape[1] // width
    pool = random_blocks(random, kind, min(count, _POOL))
    blocks: Bytes = np.resize(pool, (shape[0], shape[1] // width * size))
    writer.add_tensor(name, blocks, raw_dtype=kind)


def _write_shape(
    writer: gguf.GGUFWriter, hidden: int, intermediate: int, layers: int, heads: int, kv_heads: int
) -> None:
    writer.add_block_count(layers)
    writer.add_context_length(512)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(intermediate)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(hidden // heads)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
