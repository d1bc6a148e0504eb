"""The same weights as a Hugging Face folder and as a GGUF file compute the same."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig
from tests.engine.gguf_models import write_gguf
from tests.engine.hf_models import ARCHITECTURES, write_hf_model
from tests.engine.local_runner import load_alone
from tests.engine.parity import all_logits, random_prompts

CONFIG = EngineConfig(kv_cache_tokens=512)
DEEP_YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "mscale": 0.8,
    "mscale_all_dim": 0.8,
}
CHANGES: dict[str, dict[str, Any]] = {
    "gemma3": {"query_pre_attn_scalar": 32},
    "deepseek_v3": {"rope_parameters": DEEP_YARN},
}
"""GGUF cannot say otherwise."""
IN_GGUF = [name for name in ARCHITECTURES if name != "llama-dynamic"]
PROMPTS = random_prompts([40, 7])


def same(one: Path, other: Path) -> None:
    logits = (all_logits(load_alone(path, CONFIG), PROMPTS) for path in (one, other))
    torch.testing.assert_close(*(torch.cat(rows) for rows in logits), rtol=0, atol=2e-5)


@pytest.mark.hazard("rotary-order")
@pytest.mark.parametrize("name", IN_GGUF)
def test_a_folder_and_a_gguf_file_give_the_same_logits(tmp_path: Path, name: str) -> None:
    model = write_hf_model(tmp_path / "folder", name, **CHANGES.get(name, {}))
    same(tmp_path / "folder", write_gguf(model, tmp_path / "model.gguf"))


@pytest.mark.hazard("rotary-order")
def test_rows_of_the_wrong_order_would_have_been_noticed(tmp_path: Path) -> None:
    model = write_hf_model(tmp_path / "folder", "llama")
    path = write_gguf(model, tmp_path / "model.gguf")
    layouts = [open_checkpoint(place).layout.rotary for place in (path, tmp_path / "folder")]
    assert layouts == ["interleaved", "halves"]
    stored = path.read_bytes()
    assert model.state_dict()["model.layers.0.self_attn.q_proj.weight"].numpy().tobytes() not in (
        stored
    )
    assert model.state_dict()["model.layers.0.self_attn.v_proj.weight"].numpy().tobytes() in stored


@pytest.mark.parametrize("name", ["mixtral", "deepseek_v3"])
def test_a_split_gguf_is_one_model(tmp_path: Path, name: str) -> None:
    model = write_hf_model(tmp_path / "folder", name, **CHANGES.get(name, {}))
    first = write_gguf(model, tmp_path / "model.gguf", parts=3)
    assert len(list(tmp_path.glob("*.gguf"))) == 3
    same(tmp_path / "folder", first)


def test_latent_projections_stored_whole_and_in_pairs_are_the_same(tmp_path: Path) -> None:
    model = write_hf_model(tmp_path / "folder", "deepseek_v2")
    whole = write_gguf(model, tmp_path / "whole.gguf", paired=False)
    same(whole, write_gguf(model, tmp_path / "paired.gguf", paired=True))


def test_stacked_experts_in_a_folder_are_taken_apart(tmp_path: Path) -> None:
    for name in ("mixtral", "deepseek_v3"):
        model = write_hf_model(tmp_path / name, name)
        model.save_pretrained(tmp_path / "stacked", save_original_format=False)
        assert b"gate_up_proj" in (tmp_path / "stacked/model.safetensors").read_bytes()
        same(tmp_path / name, tmp_path / "stacked")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_read_as_they_are(tmp_path: Path, dtype: torch.dtype) -> None:
    folder = tmp_path / "folder"
    model = write_hf_model(folder, "qwen2", dtype=dtype)
    expected = {"F16": torch.float16, "BF16": torch.bfloat16}
    assert expected[open_checkpoint(folder).quantization] is dtype
    same(folder, write_gguf(model, tmp_path / "model.gguf"))
