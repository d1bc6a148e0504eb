"""fp8 (e4m3) weights times fp8 activations."""

import torch
from torch import Tensor

from engine.kernels.linear import add_bias, bias_bytes

FP8_LIMIT = 448.0
"""Largest e4m3 number (OCP 8-bit Floating Point Specification 1.0)."""


class Fp8Linear:
    """One scale a row, times e4m3 activations with one scale a token, summed in float32.

    Where the processor has no fp8 instructions torch widens the numbers first, which takes far
    longer than float32 does; `choose_linear` refuses to.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._bias = bias
        codes, scales = _to_fp8(weight)
        self._codes = codes
        self._scales = scales.t().contiguous()

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._scales.nbytes + bias_bytes(self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        codes, scales = _to_fp8(x)
        product = torch._scaled_mm(
            codes,
            self._codes.t(),
            scale_a=scales,
            scale_b=self._scales,
            out_dtype=torch.float32,
        )
        return add_bias(product, self._bias)


def _to_fp8(values: Tensor) -> tuple[Tensor, Tensor]:
    """e4m3 codes of `values` (rows, columns) and scales (rows, 1); what is not finite spoils its
    own row's scale."""
    peaks = values.abs().amax(dim=1, keepdim=True)
    scales = torch.where(peaks == 0, torch.ones_like(peaks), peaks / FP8_LIMIT)
    codes = (values / scales).nan_to_num_(0.0).to(torch.float8_e4m3fn)
    return codes, scales
