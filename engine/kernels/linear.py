"""Linear kernels: x (tokens, columns) times packed weights (rows, columns) gives (tokens, rows)."""

from typing import Protocol

import torch.nn.functional as F
from torch import Tensor


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
        return self.weight.nbytes + bias_bytes(self.bias)

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


def bias_bytes(bias: Tensor | None) -> int:
    return 0 if bias is None else bias.nbytes


def add_bias(product: Tensor, bias: Tensor | None) -> Tensor:
    """`product` plus `bias`, in place."""
    return product if bias is None else product.add_(bias)
