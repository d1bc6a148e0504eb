"""Kernels on NVIDIA GPUs; weights and tokens are there already."""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import Dtype
from engine.errors import ConfigError
from engine.errors import gettext_noop as _
from engine.kernels.bf16 import Bf16NativeLinear
from engine.kernels.fp8 import Fp8Linear
from engine.kernels.int8 import Int8Linear
from engine.kernels.linear import Fp32Linear, LinearFactory

FEWEST_TOKENS = 32
"""cuBLASLt multiplies int8 from 17 rows on; fewer are padded to this."""
UNIT = 16
"""And takes columns in multiples of 8; whole vectors are faster."""
INT8_FROM = (7, 5)
BF16_FROM = (8, 0)
FP8_FROM = (8, 9)
"""The first capabilities whose tensor cores know the type: Turing, Ampere, Ada."""


class CudaInt8Linear(Int8Linear):
    """int8 x int8 in int32 through cuBLASLt, padded with zeros to the shapes that it takes."""

    def _pack(self, codes: Tensor) -> None:
        self._rows = len(codes)
        below = -len(codes) % UNIT
        padded = F.pad(codes, (0, -codes.shape[1] % UNIT, 0, below))
        self._codes = padded.to(torch.int8).contiguous()

    def _code_bytes(self) -> int:
        return self._codes.nbytes

    def multiply(self, codes: Tensor) -> Tensor:
        tokens, columns = codes.shape
        below = max(0, FEWEST_TOKENS - tokens)
        padded = F.pad(codes, (0, -columns % UNIT, 0, below)).to(torch.int8)
        return torch._int_mm(padded, self._codes.t())[:tokens, : self._rows].float()


class CudaFp8Linear(Fp8Linear):
    """With a scale a row and a scale a token, cuBLASLt gives bf16 only."""

    SUMS = torch.bfloat16


def choose_cuda(dtype: Dtype, capability: tuple[int, int]) -> tuple[str, LinearFactory]:
    """The kernel for `dtype`, with its name for people; raises ConfigError where the GPU has none
    for it."""
    match dtype:
        case "fp32":
            return "fp32 CUDA", Fp32Linear
        case "bf16" if capability >= BF16_FROM:
            return "bf16 CUDA", Bf16NativeLinear
        case "int8" if capability >= INT8_FROM:
            return "int8 CUDA", CudaInt8Linear
        case "fp8" if capability >= FP8_FROM:
            return "fp8 CUDA", CudaFp8Linear
    raise ConfigError(
        _(
            "A GPU of compute capability %(major)s.%(minor)s has no kernel for %(dtype)s weights; "
            "choose fp32 or a newer GPU (int8 needs 7.5, bf16 8.0, fp8 8.9)."
        ),
        major=capability[0],
        minor=capability[1],
        dtype=dtype,
    )
