"""Asymmetric int4: a scale and a centre for each group of a row's columns.

No rotation: files hold 4-bit weights in groups of 32, and an unrotated group of 32 finds their very
values again.
"""

import torch
from torch import Tensor

LEVELS = 15
ZERO = 8
"""The code that means a group's centre."""


def quantize_groups(weight: Tensor, group: int) -> tuple[Tensor, Tensor, Tensor]:
    """`weight` (rows, columns) as codes 0..15, int32 (rows, groups, group), with bfloat16 scales
    and centres (rows, groups, 1): a weight is (code - 8) * scale + centre.

    Columns must be a whole number of groups.
    """
    groups = weight.view(len(weight), -1, group)
    low, high = groups.aminmax(dim=2, keepdim=True)
    scales = ((high - low) / LEVELS).bfloat16()
    step = scales.float()
    centres = (low + ZERO * step).bfloat16()
    inverse = torch.where(step > 0, 1 / step, torch.zeros_like(step))
    codes = (groups - centres.float()).mul_(inverse).round_().add_(ZERO).clamp_(0, LEVELS)
    return codes.to(torch.int32), scales, centres
