"""Rotary position embedding, pairing dimension i with i + head_dim / 2."""

import torch
from torch import Tensor


class Rotary:
    def __init__(self, head_dim: int, theta: float) -> None:
        exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        self._frequencies = 1.0 / theta**exponents

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and signed sine for `positions`, each (tokens, 1, head dim)."""
        angles = positions.to(torch.float32).unsqueeze(1) * self._frequencies
        cosine, sine = angles.cos(), angles.sin()
        return (
            torch.cat((cosine, cosine), dim=1).unsqueeze(1),
            torch.cat((-sine, sine), dim=1).unsqueeze(1),
        )


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate `x` (tokens, heads, head dim) by the angles of its positions."""
    half = x.shape[-1] // 2
    return torch.addcmul(x * cosine, x.roll(half, dims=-1), sine)
