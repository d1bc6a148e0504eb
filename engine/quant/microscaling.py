"""Activations as int8 with one power of two for each token and 32 columns.

MXINT8 of the OCP Microscaling Formats specification 1.0: a few large channels cost only their own
32 columns their precision, and since a code has 8 bits, code times scale is exact in bfloat16.
"""

import torch
from torch import Tensor

from engine.quant.int8 import LIMIT

MX_BLOCK = 32


def microscale(x: Tensor) -> Tensor:
    """`x` (tokens, columns), columns in whole blocks of 32, rounded to MXINT8, as bfloat16.

    A block that holds a value that is not finite becomes NaN.
    """
    blocks = x.view(len(x), -1, MX_BLOCK)
    peaks = blocks.abs().amax(dim=2, keepdim=True)
    # frexp gives peak = m * 2**e with m below 1, so that peak / 2**(e - 7) is below 128.
    exponents = torch.frexp(peaks).exponent - 7
    scales = torch.where(peaks.isfinite(), torch.ldexp(torch.ones_like(peaks), exponents), peaks)
    scales = torch.where(peaks > 2.0**-100, scales, peaks * 0)
    inverse = torch.where(scales > 0, 1 / scales, torch.zeros_like(scales))
    codes = (blocks * inverse).round_().clamp_(-LIMIT, LIMIT)
    return (codes * scales).to(torch.bfloat16).view(x.shape)
