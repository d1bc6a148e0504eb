"""Every storage format decodes to the reference's bits, whole and in slices."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from engine.checkpoint import open_checkpoint
from engine.checkpoint.blocks import FORMATS
from engine.loader import WeightSource
from engine.loader.dequantize import dequantize
from engine.spans import Span
from tests.engine.raw_model import Kind, random_blocks, write_raw_model

READABLE = [Kind(number) for number in FORMATS]
NAME = "blk.0.ffn_down.weight"
ROWS, COLUMNS = 256, 512


def nothing(fraction: float, detail: str) -> None:
    """A load that nobody watches."""


@pytest.mark.parametrize("kind", READABLE, ids=lambda kind: kind.name)
def test_random_blocks_have_the_references_bits(kind: Kind) -> None:
    raw = random_blocks(np.random.default_rng(1), kind, 2000)
    expected = torch.from_numpy(gguf.quants.dequantize(raw, kind))
    got = dequantize(kind.name, torch.from_numpy(raw))
    assert expected.isfinite().all()
    assert torch.equal(got.view(torch.int32), expected.view(torch.int32))


@pytest.mark.parametrize("kind", READABLE, ids=lambda kind: kind.name)
def test_a_blocks_size_is_the_packages(kind: Kind) -> None:
    expected = gguf.GGML_QUANT_SIZES[kind]
    format = FORMATS[kind.value]
    assert (format.name, format.elements, format.bytes) == (kind.name, *expected)


@pytest.mark.parametrize("kind", READABLE, ids=lambda kind: kind.name)
def test_slices_are_parts_of_the_whole_on_any_edge(tmp_path: Path, kind: Kind) -> None:
    path = write_raw_model(tmp_path / "m.gguf", kind=kind)
    checkpoint = open_checkpoint(path)
    (stored,) = (tensor for tensor in gguf.GGUFReader(path).tensors if tensor.name == NAME)
    whole = torch.tensor(gguf.quants.dequantize(stored.data, kind)).reshape(ROWS, COLUMNS)
    for span in (Span(0, COLUMNS), Span(256, 512), Span(200, 333), Span(31, 32), Span(255, 257)):
        with WeightSource(checkpoint, {NAME}, nothing) as source:
            assert torch.equal(source.columns(NAME, span), whole[:, span.start : span.stop])
    for span in (Span(0, ROWS), Span(3, 201)):
        with WeightSource(checkpoint, {NAME}, nothing) as source:
            assert torch.equal(source.rows(NAME, span), whole[span.start : span.stop])
