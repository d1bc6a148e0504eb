"""int8 and int4 in the engine's own kernels, with the codes and scales of the torch ones."""

import torch
from torch import Tensor

from engine.kernels.int4 import quantized
from engine.native.library import Library, native
from engine.native.matrices import NativeMatrix
from engine.quant import Rotation, quantize_rows

NAMES = {"avx512_vnni": "AVX-512 VNNI", "avx2": "AVX2"}
"""Of instruction sets, for people."""


class NativeLinear:
    """A packed matrix as a linear kernel."""

    def __init__(self, matrix: NativeMatrix) -> None:
        self.matrix = matrix

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        return self.matrix(x)


class Int8NativeLinear(NativeLinear):
    """Bit-identical to `Int8Linear`, whatever the processor and the batch."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        rotation = Rotation(weight.shape[1])
        codes, scales = quantize_rows(rotation.weights(weight))
        whole = codes.to(torch.int8)
        super().__init__(NativeMatrix.int8(_library(), whole, scales, bias, rotation.block))


class Int4NativeLinear(NativeLinear):
    """The weights and activations of `Int4Linear`, summed as whole numbers in each group."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, group: int = 32) -> None:
        codes, scales = quantized(weight, group)
        shape = (weight.shape[0], weight.shape[1])
        super().__init__(NativeMatrix.int4(_library(), codes, scales, bias, shape, group))


def _library() -> Library:
    library = native()
    if library is None:
        raise RuntimeError("There are no native kernels here.")
    return library


def set_threads(count: int) -> None:
    """How many threads this process computes with, in torch and in its own kernels."""
    torch.set_num_threads(count)
    library = native()
    if library is not None:
        library.threads(count)
