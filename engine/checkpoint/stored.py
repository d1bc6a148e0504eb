"""Where a tensor's bytes are: one range of one file, or several ranges stacked."""

from math import prod
from pathlib import Path

import msgspec

from engine.checkpoint.blocks import BlockFormat


class TensorInfo(msgspec.Struct, frozen=True):
    """A tensor in one piece. `shape` is row-major: (rows, columns) for a matrix."""

    name: str
    shape: tuple[int, ...]
    format: BlockFormat
    offset: int
    """Absolute byte offset in the file."""
    nbytes: int
    path: Path
    """The file that holds it."""

    @property
    def columns(self) -> int:
        return self.shape[-1]

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def row_bytes(self) -> int:
        return self.columns // self.format.elements * self.format.bytes

    def matrix(self, name: str, first: int, rows: int) -> "TensorInfo":
        """`rows` rows of columns from row `first`, all dimensions but the last counted as rows."""
        return TensorInfo(
            name,
            (rows, self.columns),
            self.format,
            self.offset + first * self.row_bytes,
            rows * self.row_bytes,
            self.path,
        )


class Piece(msgspec.Struct, frozen=True):
    info: TensorInfo
    transposed: bool = False
    """Stored (columns, rows)."""

    @property
    def rows(self) -> int:
        return self.info.shape[1 if self.transposed else 0]


class Stack(msgspec.Struct, frozen=True):
    """A matrix whose rows lie in several pieces, in this order."""

    name: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]

    @property
    def columns(self) -> int:
        return self.shape[-1]

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def format(self) -> BlockFormat:
        return self.pieces[0].info.format

    @property
    def path(self) -> Path:
        return self.pieces[0].info.path


Stored = TensorInfo | Stack
