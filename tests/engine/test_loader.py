"""Weights are read exactly once, in slices, with little memory beyond the result."""

import subprocess
import sys
from pathlib import Path

import gguf
import pytest
import torch

from engine.bundled import bundled_model
from engine.checkpoint import open_checkpoint
from engine.checkpoint.tensors import rank_tensors
from engine.config import ParallelPlan
from engine.errors import CheckpointError
from engine.loader import WeightSource
from engine.models.weights import unpermute
from engine.shards import Span, rank_share
from tests.engine.tiny_model import write_tiny_model

Kind = gguf.GGMLQuantizationType
READABLE = [Kind.F32, Kind.F16, Kind.BF16, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0]


def nothing(fraction: float, detail: str) -> None:
    """A load that nobody watches."""


@pytest.mark.parametrize("kind", READABLE)
def test_every_format_decodes_as_the_gguf_package_does(
    tmp_path: Path, kind: gguf.GGMLQuantizationType
) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", kind=kind)
    checkpoint = open_checkpoint(path)
    with WeightSource(checkpoint, set(checkpoint.tensors), nothing) as source:
        for tensor in gguf.GGUFReader(path).tensors:
            info = checkpoint.tensors[tensor.name]
            expected = torch.tensor(gguf.quants.dequantize(tensor.data, tensor.tensor_type))
            whole = len(info.shape) == 1
            got = (
                source.vector(info.name)
                if whole
                else source.rows(info.name, Span(0, info.shape[0]))
            )
            assert torch.equal(got, expected.reshape(info.shape)), info.name
        source.finish()


def test_row_and_column_slices_are_parts_of_the_whole(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_tiny_model(tmp_path / "m.gguf", kind=Kind.Q4_1))
    name = "blk.0.ffn_down.weight"
    with WeightSource(checkpoint, {name}, nothing) as source:
        whole = source.rows(name, Span(0, 96))
    for span in (Span(0, 64), Span(64, 192), Span(20, 50)):
        with WeightSource(checkpoint, {name}, nothing) as source:
            assert torch.equal(source.columns(name, span), whole[:, span.start : span.stop])
        with WeightSource(checkpoint, {name}, nothing) as source:
            assert torch.equal(source.rows(name, Span(7, 90)), whole[7:90])


def test_a_tensor_left_unread_or_read_twice_is_an_error(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_tiny_model(tmp_path / "m.gguf"))
    wanted = rank_tensors(checkpoint.config, rank_share(checkpoint.config, ParallelPlan(), 0))
    with WeightSource(checkpoint, wanted, nothing) as source:
        source.vector("output_norm.weight")
        with pytest.raises(CheckpointError, match="asked for twice"):
            source.vector("output_norm.weight")
        with pytest.raises(CheckpointError, match="was not used"):
            source.finish()


def test_a_file_that_shrinks_after_it_was_checked_is_an_error(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf")
    checkpoint = open_checkpoint(path)
    path.write_bytes(path.read_bytes()[:5000])
    with (
        WeightSource(checkpoint, {"output_norm.weight"}, nothing) as source,
        pytest.raises(CheckpointError, match="became shorter"),
    ):
        source.vector("output_norm.weight")


def test_rotary_rows_come_back_in_halves() -> None:
    original = torch.arange(16.0).unsqueeze(1).expand(16, 3)
    heads = original.view(2, 2, 4, 3)
    stored = heads.transpose(1, 2).reshape(16, 3)
    assert torch.equal(unpermute(stored, head_dim=8), original)


MEASURE = """
import resource, sys, torch
torch.set_num_threads(1)
from engine.checkpoint import open_checkpoint
from engine.loader import WeightSource
from engine.spans import Span
checkpoint = open_checkpoint(sys.argv[1])
name = "token_embd.weight"
with WeightSource(checkpoint, {name}, lambda fraction, detail: None) as source:
    torch.ones(64, 32).half().float()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = source.rows(name, Span(0, 49152))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 - table.nbytes)
"""


@pytest.mark.model
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts kilobytes only on Linux")
def test_loading_needs_little_more_than_the_weights_themselves() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(bundled_model())],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert int(done.stdout) < 32 * 1024 * 1024
