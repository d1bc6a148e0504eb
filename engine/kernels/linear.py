"""Linear kernels: x (tokens, columns) times packed weights (rows, columns) gives (tokens, rows).

All int8 kernels give bit-identical results; which one is fastest depends on the processor. Measured
on one thread, 576 x 1536: without VNNI `torch._int_mm` takes 0.94 ms for one token and 179 ms for
256, `F.linear` in float32 0.19 and 5.7 ms.
"""

from abc import ABC, abstractmethod
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.errors import gettext_noop as _
from engine.quant import LIMIT, Rotation, quantize_rows

EXACT_COLUMNS = 2**24 // (LIMIT * LIMIT)
"""Most products of two int8 values whose sum float32 holds exactly, in any order."""


class Linear(Protocol):
    """Packed weights of one layer."""

    def __call__(self, x: Tensor) -> Tensor: ...

    @property
    def nbytes(self) -> int: ...


class LinearFactory(Protocol):
    """Packs float32 weights (rows, columns) and a float32 bias (rows,), added after the product."""

    def __call__(self, weight: Tensor, bias: Tensor | None = None) -> Linear: ...


class Fp32Linear:
    """The reference: float32 throughout."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight = weight
        self.bias = bias

    @property
    def nbytes(self) -> int:
        return self.weight.nbytes + (0 if self.bias is None else self.bias.nbytes)

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class Int8Linear(ABC):
    """int8 weights, one scale a row, times int8 activations, one scale a token, summed exactly.

    Subclasses differ only in how they multiply whole numbers.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._bias = bias
        self._rotation = Rotation(weight.shape[1])
        codes, scales = quantize_rows(self._rotation.weights(weight))
        self._scales = scales.t().contiguous()
        self._pack(codes)

    @property
    def nbytes(self) -> int:
        bias = 0 if self._bias is None else self._bias.nbytes
        return self._code_bytes() + self._scales.nbytes + bias

    def __call__(self, x: Tensor) -> Tensor:
        rotated, grid = self._rotation.tokens(x)
        codes, scales = quantize_rows(rotated)
        product = self.multiply(codes).mul_(scales.mul_(grid)).mul_(self._scales)
        return product if self._bias is None else product.add_(self._bias)

    @abstractmethod
    def multiply(self, codes: Tensor) -> Tensor:
        """Sums of products of whole numbers, exact until they are rounded to float32."""

    @abstractmethod
    def _pack(self, codes: Tensor) -> None:
        """Keep the weights, given as whole numbers in float32."""

    @abstractmethod
    def _code_bytes(self) -> int: ...


class Int8OneDnnLinear(Int8Linear):
    """int8 x int8 in int32 through oneDNN; fast with AVX-512 VNNI or AMX."""

    def _pack(self, codes: Tensor) -> None:
        self._codes = codes.to(torch.int8).t().contiguous()

    def _code_bytes(self) -> int:
        return self._codes.nbytes

    def multiply(self, codes: Tensor) -> Tensor:
        return torch._int_mm(codes.to(torch.int8), self._codes).float()


class Int8ExactFp32Linear(Int8Linear):
    """The same integers carried in float32, in column blocks short enough to be exact.

    A block's sum stays below 2**24, where float32 holds every whole number, so any order of
    summation gives the same result; blocks are added in int32.
    """

    def _pack(self, codes: Tensor) -> None:
        count = -(-codes.shape[1] // EXACT_COLUMNS)
        self._blocks = [block.contiguous() for block in codes.chunk(count, dim=1)]

    def _code_bytes(self) -> int:
        return sum(block.nbytes for block in self._blocks)

    def multiply(self, codes: Tensor) -> Tensor:
        if len(self._blocks) == 1:
            return F.linear(codes, self._blocks[0])
        parts = codes.chunk(len(self._blocks), dim=1)
        sums = [F.linear(part, block) for part, block in zip(parts, self._blocks, strict=True)]
        return torch.stack(sums).to(torch.int32).sum(dim=0, dtype=torch.int32).float()


def has_integer_dot_products() -> bool:
    """Whether the processor multiplies int8 in hardware (AVX-512 VNNI or AMX)."""
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_vnni") or capabilities.get("amx_int8"))


def choose_linear(config: EngineConfig) -> tuple[str, LinearFactory]:
    """The kernel for `config.dtype` on this processor, with its name for people."""
    if config.dtype == "fp32":
        return "fp32", Fp32Linear
    if config.dtype != "int8":
        raise ConfigError(_("This processor cannot multiply %(dtype)s weights."), dtype=config.dtype)
    if has_integer_dot_products():
        return "int8 oneDNN", Int8OneDnnLinear
    return "int8 exact fp32", Int8ExactFp32Linear
