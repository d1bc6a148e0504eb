"""Slices of a folder's shards, and of matrices stored in pieces, are parts of the whole."""

import os
from pathlib import Path

import pytest
import torch

from engine.checkpoint import Stack, open_checkpoint
from engine.errors import CheckpointError
from engine.loader import WeightSource
from engine.spans import Span
from tests.engine.gguf_models import write_gguf
from tests.engine.hf_models import write_hf_model


def nothing(fraction: float, detail: str) -> None:
    """A load that nobody watches."""


def read(
    path: Path, name: str, rows: Span | None = None, columns: Span | None = None
) -> torch.Tensor:
    checkpoint = open_checkpoint(path)
    with WeightSource(checkpoint, {name}, nothing) as source:
        if columns is not None:
            return source.columns(name, columns)
        return source.rows(name, rows or Span(0, checkpoint.tensors[name].shape[0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_number_type_is_read_in_rows_and_columns(tmp_path: Path, dtype: torch.dtype) -> None:
    model = write_hf_model(tmp_path / "model", "llama", dtype=dtype)
    expected = model.state_dict()["model.layers.2.mlp.down_proj.weight"].float()
    name = "blk.2.ffn_down.weight"
    assert torch.equal(read(tmp_path / "model", name), expected)
    assert torch.equal(read(tmp_path / "model", name, rows=Span(5, 40)), expected[5:40])
    assert torch.equal(read(tmp_path / "model", name, columns=Span(7, 71)), expected[:, 7:71])


def test_every_tensor_of_every_shard_is_read_and_every_file_closed(tmp_path: Path) -> None:
    model = write_hf_model(tmp_path / "model", "gemma3")
    checkpoint = open_checkpoint(tmp_path / "model")
    before = len(os.listdir("/proc/self/fd"))
    total = 0.0
    with WeightSource(checkpoint, set(checkpoint.tensors), nothing) as source:
        for name, info in checkpoint.tensors.items():
            whole = len(info.shape) == 1
            part = source.vector(name) if whole else source.rows(name, Span(0, info.shape[0]))
            total += float(part.double().sum())
        source.finish()
        assert len(os.listdir("/proc/self/fd")) > before
    assert len(os.listdir("/proc/self/fd")) == before
    assert total == pytest.approx(sum(float(p.detach().double().sum()) for p in model.parameters()))


def test_a_matrix_in_pieces_is_cut_like_any_other(tmp_path: Path) -> None:
    model = write_hf_model(tmp_path / "model", "deepseek_v2")
    expected = model.state_dict()["model.layers.1.self_attn.kv_b_proj.weight"]
    path, name = write_gguf(model, tmp_path / "model.gguf"), "blk.1.attn_kv_b.weight"
    assert isinstance(open_checkpoint(path).tensors[name], Stack)
    assert torch.equal(read(path, name), expected)
    assert torch.equal(read(path, name, rows=Span(20, 101)), expected[20:101])
    assert torch.equal(read(path, name, columns=Span(3, 30)), expected[:, 3:30])


def test_a_shard_that_vanishes_after_it_was_checked_is_named(tmp_path: Path) -> None:
    write_hf_model(tmp_path / "model", "llama")
    checkpoint = open_checkpoint(tmp_path / "model")
    shard = checkpoint.tensors["blk.2.ffn_down.weight"].path
    shard.unlink()
    with (
        WeightSource(checkpoint, {"blk.2.ffn_down.weight"}, nothing) as source,
        pytest.raises(CheckpointError, match=f"Cannot open .*{shard.name}: No such file"),
    ):
        source.rows("blk.2.ffn_down.weight", Span(0, 1))
