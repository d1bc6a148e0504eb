"""Root mean square normalisation (arXiv 1910.07467)."""

import torch
from torch import Tensor


class RMSNorm:
    """Over the last dimension of any shape."""

    def __init__(self, weight: Tensor, eps: float) -> None:
        self.weight = weight
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)
        return x * scale * self.weight
