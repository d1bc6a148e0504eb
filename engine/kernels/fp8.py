"""fp8 (e4m3) weights times fp8 activations."""

import torch
from torch import Tensor

from engine.kernels.linear import add_bias, bias_bytes
from engine.quant import quantize_fp8


class Fp8Linear:
    """One scale a row, times e4m3 activations with one scale a token, summed in float32.

    Where the processor has no fp8 instructions torch widens the numbers first, which takes far
    longer than float32 does; `choose_linear` refuses to.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._bias = bias
        codes, scales = quantize_fp8(weight)
        self._codes = codes
        self._scales = scales.t().contiguous()

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._scales.nbytes + bias_bytes(self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        codes, scales = quantize_fp8(x)
        product = torch._scaled_mm(
            codes,
            self._codes.t(),
            scale_a=scales,
            scale_b=self._scales,
            out_dtype=torch.float32,
        )
        return add_bias(product, self._bias)
