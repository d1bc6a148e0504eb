"""fp8 e4m3: one scale a row."""

import torch
from torch import Tensor

FP8_LIMIT = 448.0
"""Largest e4m3 number (OCP 8-bit Floating Point Specification 1.0)."""


def quantize_fp8(values: Tensor) -> tuple[Tensor, Tensor]:
    """e4m3 codes of `values` (rows, columns) and scales (rows, 1).

    A row that holds a non-finite value gets a non-finite scale.
    """
    peaks = values.abs().amax(dim=1, keepdim=True)
    scales = torch.where(peaks == 0, torch.ones_like(peaks), peaks / FP8_LIMIT)
    codes = (values / scales).nan_to_num_(0.0).to(torch.float8_e4m3fn)
    return codes, scales
