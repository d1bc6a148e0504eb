"""K-quants: blocks of 256 weights in groups of 16 or 32, whose scales are small integers.

Layouts: github.com/ggml-org/ggml, src/ggml-common.h. Products are rounded in the order of the
reference (block scale times group scale first), so that every weight has the reference's bits.
"""

import torch
from torch import Tensor

from engine.loader.dequantize_bits import fields, half

_GROUPS_OF_16, _GROUPS_OF_32 = (16, 16), (8, 32)


def q2_k(raw: Tensor) -> Tensor:
    scales, codes = raw[:, :16], fields(raw[:, 16:80], 2, 32)
    scale = half(raw, 80) * (scales & 15)
    offset = half(raw, 82) * (scales >> 4)
    return _scaled(codes, scale, offset)


def q3_k(raw: Tensor) -> Tensor:
    low, high = fields(raw[:, 96:104], 4, 8), fields(raw[:, 104:108], 2, 4)
    scale = half(raw, 108) * ((low | high << 4).float() - 32)
    third = fields(raw[:, :32], 1, 32)
    codes = (fields(raw[:, 32:96], 2, 32) | third << 2).float() - 4
    return _scaled(codes, scale)


def q4_k(raw: Tensor) -> Tensor:
    return _scaled(fields(raw[:, 16:], 4, 32), *_scale_and_offset(raw))


def q5_k(raw: Tensor) -> Tensor:
    fifth = fields(raw[:, 16:48], 1, 32)
    codes = fields(raw[:, 48:], 4, 32) | fifth << 4
    return _scaled(codes, *_scale_and_offset(raw))


def q6_k(raw: Tensor) -> Tensor:
    low, high = fields(raw[:, :128], 4, 64), fields(raw[:, 128:192], 2, 32)
    scale = half(raw, 208) * raw[:, 192:208].contiguous().view(torch.int8)
    return _scaled((low | high << 4).float() - 32, scale)


def _scale_and_offset(raw: Tensor) -> tuple[Tensor, Tensor]:
    """Of each of the 8 groups of Q4_K and Q5_K: two 6-bit numbers, 12 bytes for all of them.

    Bytes 4 to 7 hold the first four scales, 8 to 11 the first four offsets, in 6 bits each; their
    two upper bits and bytes 12 to 15 hold the other four of both.
    """
    scales, offsets, lower = raw[:, 4:8], raw[:, 8:12], raw[:, 12:16]
    scale = torch.cat((scales & 63, (lower & 15) | (scales >> 6) << 4), dim=1)
    offset = torch.cat((offsets & 63, (lower >> 4) | (offsets >> 6) << 4), dim=1)
    return half(raw, 0) * scale, half(raw, 2) * offset


def _scaled(codes: Tensor, scale: Tensor, offset: Tensor | None = None) -> Tensor:
    """codes * scale - offset, one scale and offset a group; float32 (blocks, 256)."""
    groups = _GROUPS_OF_16 if scale.shape[1] == 16 else _GROUPS_OF_32
    weights = codes.float().view(-1, *groups) * scale.unsqueeze(2)
    if offset is not None:
        weights -= offset.unsqueeze(2)
    return weights.flatten(1)
