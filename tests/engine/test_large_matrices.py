"""A matrix packed in parts multiplies as the whole does."""

from pathlib import Path

import pytest
import torch

from engine.checkpoint import open_checkpoint
from engine.config import Dtype, EngineConfig
from engine.kernels import SplitLinear, choose_linear
from engine.loader import WeightSource
from engine.models import packing
from engine.models.packing import pack_stack
from engine.spans import Span
from tests.engine.raw_model import Kind, write_raw_model

GATE, UP, DOWN = (f"blk.0.ffn_{part}.weight" for part in ("gate", "up", "down"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_raw_model(tmp_path_factory.mktemp("model") / "m.gguf", kind=Kind.Q6_K)


@pytest.mark.parametrize("dtype", ["int8", "int4"])
@pytest.mark.parametrize(
    ("names", "rows", "columns"),
    [([GATE, UP], Span(30, 400), None), ([DOWN], None, Span(100, 228))],
    ids=["rows", "columns"],
)
def test_parts_give_the_bits_of_the_whole(
    model: Path,
    dtype: Dtype,
    names: list[str],
    rows: Span | None,
    columns: Span | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, factory = choose_linear(EngineConfig(dtype=dtype))
    checkpoint = open_checkpoint(model)
    packed = []
    for most in (2**30, 64 * 1024):
        monkeypatch.setattr(packing, "MOST_BYTES", most)
        with WeightSource(checkpoint, set(names), lambda fraction, detail: None) as source:
            shape = source.shape(names[0])
            height = (rows.size if rows else shape[0]) * len(names)
            bias = torch.arange(height, dtype=torch.float32)
            packed.append(pack_stack(factory, source, names, rows=rows, columns=columns, bias=bias))
            source.finish()
    whole, split = packed
    assert isinstance(split, SplitLinear)
    assert not isinstance(whole, SplitLinear)
    x = torch.randn(3, columns.size if columns else shape[1])
    assert torch.equal(split(x), whole(x))
