"""int8 weights times int8 activations.

All kernels give bit-identical results; which one is fastest depends on the processor. Measured on
one thread, 576 x 1536: without VNNI `torch._int_mm` takes 0.94 ms for one token and 179 ms for 256,
`F.linear` in float32 0.19 and 5.7 ms.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.linear import add_bias, bias_bytes
from engine.quant import LIMIT, Rotation, quantize_rows

EXACT_COLUMNS = 2**24 // (LIMIT * LIMIT)
"""Most products of two int8 values whose sum float32 holds exactly, in any order."""


class Int8Linear(ABC):
    """int8 weights, one scale a row, times int8 activations, one scale a token, summed exactly.

    Subclasses differ only in how they multiply whole numbers.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._bias = bias
        self._rotation = Rotation(weight.shape[1], weight.device)
        codes, scales = quantize_rows(self._rotation.weights(weight))
        self._scales = scales.t().contiguous()
        self._pack(codes)

    @property
    def nbytes(self) -> int:
        return self._code_bytes() + self._scales.nbytes + bias_bytes(self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        rotated, grid = self._rotation.tokens(x)
        codes, scales = quantize_rows(rotated)
        product = self.multiply(codes).mul_(scales.mul_(grid)).mul_(self._scales)
        return add_bias(product, self._bias)

    @abstractmethod
    def multiply(self, codes: Tensor) -> Tensor:
        """Sums of products of whole numbers, exact until they are rounded to float32."""

    @abstractmethod
    def _pack(self, codes: Tensor) -> None:
        """Keep the weights, given as whole numbers in float32."""

    @abstractmethod
    def _code_bytes(self) -> int: ...


class Int8OneDnnLinear(Int8Linear):
    """int8 x int8 in int32 through oneDNN; fast with AVX-512 VNNI or AMX."""

    def _pack(self, codes: Tensor) -> None:
        self._codes = codes.to(torch.int8).t().contiguous()

    def _code_bytes(self) -> int:
        return self._codes.nbytes

    def multiply(self, codes: Tensor) -> Tensor:
        return torch._int_mm(codes.to(torch.int8), self._codes).float()


class Int8ExactFp32Linear(Int8Linear):
    """The same integers carried in float32, in column blocks short enough to be exact.

    A block's sum stays below 2**24, where float32 holds every whole number, so any order of
    summation gives the same result; blocks are added in int32.
    """

    def _pack(self, codes: Tensor) -> None:
        count = -(-codes.shape[1] // EXACT_COLUMNS)
        self._blocks = [block.contiguous() for block in codes.chunk(count, dim=1)]

    def _code_bytes(self) -> int:
        return sum(block.nbytes for block in self._blocks)

    def multiply(self, codes: Tensor) -> Tensor:
        if len(self._blocks) == 1:
            return F.linear(codes, self._blocks[0])
        parts = codes.chunk(len(self._blocks), dim=1)
        sums = [F.linear(part, block) for part, block in zip(parts, self._blocks, strict=True)]
        return torch.stack(sums).to(torch.int32).sum(dim=0, dtype=torch.int32).float()
