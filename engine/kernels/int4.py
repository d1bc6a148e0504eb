"""int4 weights, packed two codes a byte, times int8 activations.

torch's kernel unpacks in registers and multiplies in float32: 4 tokens at a time on AVX2, each
token's sums in an order that depends on nothing else, so a row is the same in every batch.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.linear import add_bias, bias_bytes
from engine.quant import microscale, quantize_groups

ROW_UNIT = 16
"""The kernel takes rows in multiples of this."""
_CHUNK = 2**20
"""Weights quantised at once: trying several ranges takes many times their memory."""
_INNER_TILES = 2
"""An argument that the packing takes for GPUs; any allowed value means nothing here."""


class Int4Linear:
    """Rows and columns are padded with zeros to what the kernel takes."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, group: int = 32) -> None:
        self._rows, self._columns = weight.shape
        self._bias = bias
        self._group = group
        codes, scales = quantized(weight, group)
        below = (0, 0, 0, -self._rows % ROW_UNIT)
        codes, scales = F.pad(codes, below), F.pad(scales, (0, 0, *below))
        self._codes = torch.ops.aten._convert_weight_to_int4pack_for_cpu(
            codes.to(torch.int32), _INNER_TILES
        )
        self._scales = scales.transpose(0, 1).contiguous()

    @property
    def nbytes(self) -> int:
        codes: int = self._codes.nbytes
        return codes + self._scales.nbytes + bias_bytes(self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        codes = microscale(F.pad(x, (0, -self._columns % self._group)))
        product: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            codes, self._codes, self._group, self._scales
        )
        return add_bias(product[:, : self._rows].float(), self._bias)


def quantized(weight: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """Codes, uint8 (rows, columns padded to whole groups), and scales with centres, float32
    (rows, groups, 2)."""
    columns = weight.shape[1]
    codes, scales = [], []
    for part in torch.split(weight, max(1, _CHUNK // columns)):
        padded = F.pad(part, (0, -columns % group))
        code, scale, centre = quantize_groups(padded, group)
        codes.append(code.to(torch.uint8).view(padded.shape))
        scales.append(torch.cat((scale, centre), dim=2))
    return torch.cat(codes), torch.cat(scales)
