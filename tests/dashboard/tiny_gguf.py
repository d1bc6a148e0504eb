"""A llama of two layers, small enough to break in many ways."""

from collections.abc import Collection
from pathlib import Path

import gguf
import numpy as np

HIDDEN, INNER, HEADS, KV_HEADS, TOKENS = 32, 64, 2, 1, 16


def write_model(
    path: Path,
    *,
    architecture: str = "llama",
    name: str = "Tiny Llama",
    without: Collection[str] = (),
) -> Path:
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_name(name)
    writer.add_license("apache-2.0")
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(2)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"t{token}" for token in range(TOKENS)])
    writer.add_token_types([1] * TOKENS)
    writer.add_token_merges(["t 0"])
    for tensor, shape in _shapes().items():
        if tensor not in without:
            writer.add_tensor(tensor, np.ones(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _shapes() -> dict[str, tuple[int, ...]]:
    keys = HIDDEN // HEADS * KV_HEADS
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm": (HIDDEN,),
        "attn_q": (HIDDEN, HIDDEN),
        "attn_k": (keys, HIDDEN),
        "attn_v": (keys, HIDDEN),
        "attn_output": (HIDDEN, HIDDEN),
        "ffn_norm": (HIDDEN,),
        "ffn_gate": (INNER, HIDDEN),
        "ffn_up": (INNER, HIDDEN),
        "ffn_down": (HIDDEN, INNER),
    }
    shapes = {f"blk.{i}.{part}.weight": shape for i in range(2) for part, shape in layer.items()}
    return {"token_embd.weight": (TOKENS, HIDDEN), "output_norm.weight": (HIDDEN,)} | shapes
