"""Weights packed for the kernels."""

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.native import types
from engine.native.library import Library


class NativeMatrix:
    """A linear layer: (tokens, columns) to (tokens, rows). Keeps alive what it points at."""

    def __init__(self, library: Library, matrix: types.Matrix, kept: Sequence[Tensor]) -> None:
        self.rows, self.columns = int(matrix.rows), int(matrix.columns)
        self.matrix = matrix
        self._library = library
        self._kept = tuple(kept)
        self._linear, self._parts = joined([self])

    @classmethod
    def int8(
        cls, library: Library, codes: Tensor, scales: Tensor, bias: Tensor | None, block: int
    ) -> "NativeMatrix":
        """Codes (rows, columns) with a scale a row, times tokens rotated in blocks of `block`."""
        rows, columns = codes.shape
        panels, sums = library.pack_int8(codes)
        scales = _padded(scales.flatten())
        matrix = types.Matrix(
            types.INT8,
            rows,
            columns,
            block,
            panels.data_ptr(),
            scales.data_ptr(),
            sums.data_ptr(),
            None if bias is None else bias.data_ptr(),
        )
        return cls(library, matrix, [panels, sums, scales, *_some(bias)])

    @classmethod
    def int4(
        cls,
        library: Library,
        codes: Tensor,
        scales: Tensor,
        bias: Tensor | None,
        shape: tuple[int, int],
        group: int,
    ) -> "NativeMatrix":
        """Codes 0..15, uint8 (rows, columns padded to whole groups), with bfloat16 scales and
        centres (rows, groups, 2); `shape` without the padding."""
        rows, groups = scales.shape[:2]
        below = -rows % 16
        spread = torch.nn.functional.pad(scales, (0, 0, 0, 0, 0, below)).bfloat16()
        # By panel and group: 16 scales, then 16 centres.
        spread = spread.view(-1, 16, groups, 2).permute(0, 2, 3, 1).contiguous()
        panels = library.pack_int4(codes[:, : -(-shape[1] // 32) * 32])
        library.advise(spread)
        matrix = types.Matrix(
            types.INT4,
            shape[0],
            shape[1],
            group,
            panels.data_ptr(),
            spread.data_ptr(),
            None,
            None if bias is None else bias.data_ptr(),
        )
        return cls(library, matrix, [panels, spread, *_some(bias)])

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self._kept)

    def __call__(self, x: Tensor) -> Tensor:
        out = x.new_empty(len(x), self.rows)
        self._library.linear(self._linear, x.contiguous(), out)
        return out


def joined(matrices: Sequence[NativeMatrix]) -> tuple[types.Linear, object]:
    """Matrices one below the other, and what has to be kept with it."""
    parts = (types.Matrix * len(matrices))(*(one.matrix for one in matrices))
    return types.Linear(len(matrices), ctypes.cast(parts, ctypes.POINTER(types.Matrix))), parts


def _padded(vector: Tensor) -> Tensor:
    return torch.nn.functional.pad(vector.float(), (0, -len(vector) % 16)).contiguous()


def _some(tensor: Tensor | None) -> list[Tensor]:
    return [] if tensor is None else [tensor]
