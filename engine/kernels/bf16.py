"""bf16 weights."""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.linear import add_bias, bias_bytes

_CHUNK = 2**20
"""Weights widened at once: bounds what a multiplication needs besides its weights."""


class Bf16UpcastLinear:
    """bf16 weights widened chunk by chunk, float32 activations and sums.

    Without bf16 instructions it is faster than torch's own product from a few tokens on, and more
    exact, since neither activations nor results are rounded.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = weight.to(torch.bfloat16)
        self._bias = bias
        self._count = -(-weight.numel() // _CHUNK)

    @property
    def nbytes(self) -> int:
        return self._weight.nbytes + bias_bytes(self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        parts = [F.linear(x, part.float()) for part in self._weight.chunk(self._count)]
        return add_bias(parts[0] if len(parts) == 1 else torch.cat(parts, dim=1), self._bias)


class Bf16NativeLinear:
    """bf16 weights times bf16 activations with the processor's own instructions (AVX-512 BF16 or
    AMX); sums are float32 and rounded to bf16 once."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = weight.to(torch.bfloat16)
        self._bias = bias

    @property
    def nbytes(self) -> int:
        return self._weight.nbytes + bias_bytes(self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        return add_bias(F.linear(x.to(torch.bfloat16), self._weight).float(), self._bias)
