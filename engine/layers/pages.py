"""One kind of entry of a paged cache (keys, values or latents), in one number type."""

import math
from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from engine.config import BLOCK_SIZE, KvDtype
from engine.device import CPU
from engine.quant import quantize_fp8, quantize_rows

_FP8_VALUES = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
"""What each e4m3 code means; looking it up takes a sixth of the time of torch's conversion."""


class Pages(ABC):
    """Entries of `heads` vectors of `dim` numbers, BLOCK_SIZE to a block. All zero at first.

    What is not finite never comes back as a number: the whole vector or the element is NaN.
    """

    def __init__(
        self, layers: int, blocks: int, heads: int, dim: int, device: torch.device = CPU
    ) -> None:
        self.heads = heads
        self.dim = dim
        self._layers = layers
        self._blocks = blocks
        self._device = device

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts())

    def clear(self, blocks: Tensor) -> None:
        for part in self._parts():
            part.index_fill_(1, blocks, 0)

    def stored(self, layer: int) -> tuple[Tensor, ...]:
        """What is kept of one layer: the numbers, and their scales where they have any."""
        return tuple(part[layer] for part in self._parts())

    @abstractmethod
    def write(self, layer: int, slots: Tensor, entries: Tensor) -> None:
        """Store `entries` (tokens, heads, dim) at `slots`."""

    @abstractmethod
    def read(self, layer: int, tables: Tensor) -> Tensor:
        """Blocks in float32, (blocks, BLOCK_SIZE, heads, dim)."""

    @abstractmethod
    def _parts(self) -> tuple[Tensor, ...]:
        """What is stored, each (layers, blocks, BLOCK_SIZE, heads, numbers)."""

    def _zeros(self, numbers: int, dtype: torch.dtype) -> Tensor:
        shape = (self._layers, self._blocks, BLOCK_SIZE, self.heads, numbers)
        if self._device.type != "cpu":
            return torch.zeros(shape, dtype=dtype, device=self._device)
        # torch writes its zeros; the system's own come when a page is first touched.
        empty = np.zeros(math.prod(shape) * dtype.itemsize, dtype=np.uint8)
        return torch.from_numpy(empty).view(dtype).view(shape)


class FloatPages(Pages):
    """float32, or bfloat16 rounded to nearest."""

    def __init__(
        self,
        layers: int,
        blocks: int,
        heads: int,
        dim: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device = CPU,
    ) -> None:
        super().__init__(layers, blocks, heads, dim, device)
        self._data = self._zeros(dim, dtype)

    def _parts(self) -> tuple[Tensor, ...]:
        return (self._data,)

    def write(self, layer: int, slots: Tensor, entries: Tensor) -> None:
        self._data[layer].flatten(0, 1).index_copy_(0, slots, entries.to(self._data.dtype))

    def read(self, layer: int, tables: Tensor) -> Tensor:
        return self._data[layer].index_select(0, tables).float()


class ScaledPages(Pages):
    """One byte a number, with a float32 scale for each token and head beside."""

    def __init__(
        self,
        layers: int,
        blocks: int,
        heads: int,
        dim: int,
        dtype: torch.dtype,
        device: torch.device = CPU,
    ) -> None:
        super().__init__(layers, blocks, heads, dim, device)
        self._codes = self._zeros(dim, dtype)
        self._scales = self._zeros(1, torch.float32)

    def _parts(self) -> tuple[Tensor, ...]:
        return self._codes, self._scales

    def write(self, layer: int, slots: Tensor, entries: Tensor) -> None:
        codes, scales = self._encode(entries.reshape(-1, self.dim))
        shape = (-1, self.heads, self.dim)
        self._codes[layer].flatten(0, 1).index_copy_(0, slots, codes.view(shape))
        self._scales[layer].flatten(0, 1).index_copy_(0, slots, scales.view(-1, self.heads, 1))

    def read(self, layer: int, tables: Tensor) -> Tensor:
        values = self._decode(self._codes[layer].index_select(0, tables))
        return values.mul_(self._scales[layer].index_select(0, tables))

    @abstractmethod
    def _encode(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of `vectors` (vectors, dim) and scales (vectors, 1)."""

    @abstractmethod
    def _decode(self, codes: Tensor) -> Tensor:
        """What codes mean before they are scaled, float32."""


class Int8Pages(ScaledPages):
    def __init__(
        self, layers: int, blocks: int, heads: int, dim: int, device: torch.device = CPU
    ) -> None:
        super().__init__(layers, blocks, heads, dim, torch.int8, device)

    def _encode(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        codes, scales = quantize_rows(vectors)
        return codes.to(torch.int8), scales

    def _decode(self, codes: Tensor) -> Tensor:
        return codes.float()


class Fp8Pages(ScaledPages):
    """e4m3 by way of its bytes, since few operations know the type itself.

    Unscaled, small values would fall among its coarse smallest numbers: 18.71 becomes 19.25 on the
    text that 19.01 is measured on with a scale.
    """

    def __init__(
        self, layers: int, blocks: int, heads: int, dim: int, device: torch.device = CPU
    ) -> None:
        super().__init__(layers, blocks, heads, dim, torch.uint8, device)

    def _encode(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        codes, scales = quantize_fp8(vectors)
        return codes.view(torch.uint8), scales

    def _decode(self, codes: Tensor) -> Tensor:
        if codes.device.type != "cpu":
            return codes.view(torch.float8_e4m3fn).float()
        return _FP8_VALUES.index_select(0, codes.flatten().int()).view(codes.shape)


def make_pages(
    dtype: KvDtype, layers: int, blocks: int, heads: int, dim: int, device: torch.device = CPU
) -> Pages:
    """Pages of `dtype`; every processor and every GPU can read all of them."""
    match dtype:
        case "fp32":
            return FloatPages(layers, blocks, heads, dim, device=device)
        case "bf16":
            return FloatPages(layers, blocks, heads, dim, torch.bfloat16, device)
        case "fp8":
            return Fp8Pages(layers, blocks, heads, dim, device)
        case "int8":
            return Int8Pages(layers, blocks, heads, dim, device)
