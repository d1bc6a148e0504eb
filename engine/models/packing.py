"""Packs matrices within bounded memory: a large one in parts of its rows, each read when packed."""

from collections.abc import Iterable, Sequence

from torch import Tensor

from engine.kernels import Fp32Linear, Linear, LinearFactory, SplitLinear
from engine.loader import WeightSource
from engine.spans import Span

MOST_BYTES = 112 * 2**20
"""float32 weights packed at once. Packing takes a few times as much for a while, and loading may
take 512 MiB besides the weights that stay."""


def pack_stack(
    factory: LinearFactory,
    source: WeightSource,
    names: Sequence[str],
    *,
    rows: Span | None = None,
    columns: Span | None = None,
    bias: Tensor | None = None,
) -> Linear:
    """One linear layer over the same slice of several matrices, one below the other."""
    shape = source.shape(names[0])
    height = (rows.size if rows else shape[0]) * len(names)
    width = columns.size if columns else shape[1]
    if not _is_large(factory, height, width):
        return factory(source.stack(names, rows, columns), bias)
    return _split(factory, source.in_parts(names, rows, columns, MOST_BYTES), bias)


def pack_table(factory: LinearFactory, table: Tensor) -> Linear:
    """A linear layer over weights that stay in memory besides."""
    height, width = table.shape
    if not _is_large(factory, height, width):
        return factory(table)
    parts = -(-table.nbytes // MOST_BYTES)
    return _split(factory, table.chunk(parts), None)


def _is_large(factory: LinearFactory, height: int, width: int) -> bool:
    """Whether it must not be packed at once. float32 is not packed at all."""
    return factory is not Fp32Linear and height * width * 4 > MOST_BYTES


def _split(factory: LinearFactory, parts: Iterable[Tensor], bias: Tensor | None) -> Linear:
    packed: list[Linear] = []
    row = 0
    for part in parts:
        own = None if bias is None else bias[row : row + len(part)]
        packed.append(factory(part, own))
        row += len(part)
    return SplitLinear(packed)
