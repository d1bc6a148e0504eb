"""Symmetric int8: one scale per weight row, one per activation row (token).

With integer operands of at most 127 a dot product is exact in int32, so a linear layer gives the
same answer whatever rows share its batch.
"""

import torch
from torch import Tensor

LIMIT = 127


def quantize_rows(values: Tensor) -> tuple[Tensor, Tensor]:
    """`values` (rows, columns) as whole numbers in -127..127, still float32, and scales (rows, 1).

    A row that holds a non-finite value gets a non-finite scale, so its results are not finite
    either and the caller's check finds them.
    """
    scales = values.abs().amax(dim=1, keepdim=True) / LIMIT
    inverse = torch.where(scales > 0, 1 / scales, torch.zeros_like(scales))
    return (values * inverse).round_().clamp_(-LIMIT, LIMIT).nan_to_num_(0.0), scales
