"""GGUF blocks to float32.

Layouts: github.com/ggml-org/ggml, src/ggml-common.h. In the 4 and 5 bit formats byte j of a block
holds weight j in its low half and weight j + 16 in its high half.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.loader.dequantize_bits import fields, half
from engine.loader.dequantize_k import q2_k, q3_k, q4_k, q5_k, q6_k


def dequantize(name: str, raw: Tensor) -> Tensor:
    """float32 weights of `raw`, uint8 of shape (blocks, block bytes); returns (blocks, weights)."""
    decode = _DECODERS.get(name)
    if decode is None:
        raise CheckpointError(_("Weights stored as %(format)s cannot be read."), format=name)
    return decode(raw)


def _nibbles(packed: Tensor) -> Tensor:
    return fields(packed, 4, 16)


def _fifth_bits(raw: Tensor, at: int) -> Tensor:
    """Bit 4 of each of the 32 weights, from the bit field at byte `at`."""
    shifts = torch.arange(8, dtype=torch.uint8)
    bits = (raw[:, at : at + 4].unsqueeze(2) >> shifts) & 1
    return bits.reshape(-1, 32) << 4


def _f32(raw: Tensor) -> Tensor:
    return raw.contiguous().view(torch.float32)


def _f16(raw: Tensor) -> Tensor:
    return raw.contiguous().view(torch.float16).float()


def _bf16(raw: Tensor) -> Tensor:
    return raw.contiguous().view(torch.bfloat16).float()


def _q4_0(raw: Tensor) -> Tensor:
    return (_nibbles(raw[:, 2:]).float() - 8) * half(raw, 0)


def _q4_1(raw: Tensor) -> Tensor:
    return _nibbles(raw[:, 4:]).float() * half(raw, 0) + half(raw, 2)


def _q5_0(raw: Tensor) -> Tensor:
    codes = _nibbles(raw[:, 6:]) | _fifth_bits(raw, 2)
    return (codes.float() - 16) * half(raw, 0)


def _q5_1(raw: Tensor) -> Tensor:
    codes = _nibbles(raw[:, 8:]) | _fifth_bits(raw, 4)
    return codes.float() * half(raw, 0) + half(raw, 2)


def _q8_0(raw: Tensor) -> Tensor:
    return raw[:, 2:].contiguous().view(torch.int8).float() * half(raw, 0)


def _iq4_nl(raw: Tensor) -> Tensor:
    return _UNEVEN[_nibbles(raw[:, 2:]).int()] * half(raw, 0)


_UNEVEN = torch.tensor(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], dtype=torch.float32
)
"""What the 16 codes of IQ4_NL stand for: closer together around zero."""

_DECODERS: dict[str, Callable[[Tensor], Tensor]] = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "IQ4_NL": _iq4_nl,
    "Q2_K": q2_k,
    "Q3_K": q3_k,
    "Q4_K": q4_k,
    "Q5_K": q5_k,
    "Q6_K": q6_k,
}
