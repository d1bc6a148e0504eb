"""fp8 (e4m3) weights times fp8 activations."""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.linear import add_bias, bias_bytes
from engine.quant import quantize_fp8

UNIT = 16
"""Rows and columns are padded with zeros to multiples of this."""


class Fp8Linear:
    """One scale a row, times e4m3 activations with one scale a token, summed in float32.

    Where the processor has no fp8 instructions torch widens the numbers first, which takes far
    longer than float32 does; `choose_linear` refuses to.
    """

    SUMS = torch.float32
    """What the product is rounded to."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._bias = bias
        self._rows, self._columns = weight.shape
        padded = F.pad(weight, (0, -self._columns % UNIT, 0, -self._rows % UNIT))
        self._codes, scales = quantize_fp8(padded)
        self._scales = scales.t().contiguous()

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._scales.nbytes + bias_bytes(self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        codes, scales = quantize_fp8(F.pad(x, (0, -self._columns % UNIT)))
        product = torch._scaled_mm(
            codes,
            self._codes.t(),
            scale_a=scales,
            scale_b=self._scales,
            out_dtype=self.SUMS,
        )
        return add_bias(product[:, : self._rows].float(), self._bias)
