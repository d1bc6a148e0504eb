"""Asymmetric int4: a scale and an offset for each group of a row's columns.

No rotation: files hold 4-bit weights in groups of 32, and an unrotated group of 32 finds their very
values again.
"""

import torch
from torch import Tensor

LEVELS = 15
_SHRINKS = (1.0, 0.95, 0.9, 0.85, 0.8)
"""Fractions of a group's range that are tried; clipping its ends may cost less than it gains."""


def quantize_groups(weight: Tensor, group: int) -> tuple[Tensor, Tensor, Tensor]:
    """`weight` (rows, columns) as codes 0..15, int32 (rows, groups, group), with bfloat16 scales
    and centres (rows, groups, 1): a weight is (code - 8) * scale + centre.

    Columns must be a whole number of groups. Of several ranges, each group takes the one of the
    least squared error.
    """
    groups = weight.view(len(weight), -1, group)
    low, high = groups.amin(2, keepdim=True), groups.amax(2, keepdim=True)
    codes, scales, centres = _quantize(groups, low, high)
    best = _error(groups, codes, scales, centres)
    for shrink in _SHRINKS[1:]:
        cut = (high - low) * (1 - shrink) / 2
        tried = _quantize(groups, low + cut, high - cut)
        error = _error(groups, *tried)
        better = error < best
        best = torch.where(better, error, best)
        codes = torch.where(better, tried[0], codes)
        scales = torch.where(better, tried[1], scales)
        centres = torch.where(better, tried[2], centres)
    return codes, scales, centres


def _quantize(groups: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    scales = ((high - low) / LEVELS).bfloat16()
    step = scales.float()
    centres = (low + 8 * step).bfloat16()
    inverse = torch.where(step > 0, 1 / step, torch.zeros_like(step))
    codes = ((groups - centres.float()) * inverse).round_().add_(8).clamp_(0, LEVELS)
    return codes.to(torch.int32), scales, centres


def _error(groups: Tensor, codes: Tensor, scales: Tensor, centres: Tensor) -> Tensor:
    restored = (codes - 8) * scales.float() + centres.float()
    return (restored - groups).square().sum(2, keepdim=True)
