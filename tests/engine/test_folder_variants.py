"""Folders that hold more than the decoder: what may be left unread, and what may not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from engine.checkpoint import Checkpoint, open_checkpoint
from engine.errors import CheckpointError
from tests.engine.hf_models import write_hf_model

Tensors = dict[str, Any]


def rewritten(folder: Path, change: Callable[[Tensors], Tensors]) -> Checkpoint:
    """The folder's tensors in one file, changed."""
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file)
    return open_checkpoint(folder)


def nested(folder: Path) -> None:
    """Make a text decoder the part of a model that also sees images."""
    text = json.loads((folder / "config.json").read_text())
    outer = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 8}}
    (folder / "config.json").write_text(json.dumps(outer))


@pytest.mark.parametrize("prefix", ["language_model.model.", "model.language_model.", "model."])
def test_the_text_decoder_of_an_image_model_is_read(tmp_path: Path, prefix: str) -> None:
    write_hf_model(tmp_path, "gemma3", shard="1GB")
    plain = open_checkpoint(tmp_path)
    nested(tmp_path)
    renamed = rewritten(
        tmp_path,
        lambda tensors: {
            prefix + name.removeprefix("model."): array for name, array in tensors.items()
        },
    )
    assert renamed.config == plain.config
    assert renamed.tensors.keys() == plain.tensors.keys()


def test_an_image_encoder_is_refused_by_name(tmp_path: Path) -> None:
    write_hf_model(tmp_path, "gemma3", shard="1GB")
    nested(tmp_path)
    name = "vision_tower.vision_model.embeddings.patch_embedding.weight"
    with pytest.raises(CheckpointError, match=f"'{name}' belongs to an image encoder"):
        rewritten(tmp_path, lambda tensors: {**tensors, name: np.zeros((2, 2), np.float32)})


def test_layers_that_only_predict_further_tokens_are_left_unread(tmp_path: Path) -> None:
    write_hf_model(tmp_path, "deepseek_v3", shard="1GB")
    plain = open_checkpoint(tmp_path)
    extra = {
        "model.layers.3.input_layernorm.weight": np.zeros(64, np.float32),
        "model.layers.3.eh_proj.weight": np.zeros((64, 128), np.float32),
    }
    assert (
        rewritten(tmp_path, lambda held: {**held, **extra}).tensors.keys() == plain.tensors.keys()
    )
    beyond = {"model.layers.4.input_layernorm.weight": np.zeros(64, np.float32)}
    with pytest.raises(
        CheckpointError, match=r"'model\.layers\.4\.input_layernorm\.weight' is not"
    ):
        rewritten(tmp_path, lambda held: {**held, **beyond})


def test_a_buffer_that_follows_from_the_configuration_is_left_unread(tmp_path: Path) -> None:
    write_hf_model(tmp_path, "llama", shard="1GB")
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    held = rewritten(tmp_path, lambda tensors: {**tensors, name: np.ones(8, np.float32)})
    assert all("inv_freq" not in tensor for tensor in held.tensors)


def test_a_count_of_experts_beyond_what_is_stored_is_refused(tmp_path: Path) -> None:
    write_hf_model(tmp_path, "mixtral", shard="1GB")
    config = json.loads((tmp_path / "config.json").read_text())
    for count, wanted in [
        (5, "block_sparse_moe.gate.weight' has shape [4, 64]"),
        (1_000_000, "1000000 experts each cannot be real"),
    ]:
        changed = {**config, "num_local_experts": count}
        (tmp_path / "config.json").write_text(json.dumps(changed))
        with pytest.raises(CheckpointError) as caught:
            open_checkpoint(tmp_path)
        assert wanted in str(caught.value)
