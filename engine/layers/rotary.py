"""Rotary position embedding (arXiv 2104.09864), pairing dimension i with i + dimensions / 2."""

import torch
from torch import Tensor

from engine.device import CPU
from engine.layers.frequencies import rope_frequencies
from engine.model_config import Rope


class Rotary:
    """Angles of one kind of layer. `limit` is the deployment's longest sequence in tokens."""

    def __init__(self, rope: Rope, limit: int, device: torch.device = CPU) -> None:
        frequencies, self._magnitude = rope_frequencies(rope, limit)
        self._frequencies = frequencies.to(device)

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and signed sine for `positions`, each (tokens, 1, rotated dimensions)."""
        angles = positions.to(torch.float32).unsqueeze(1) * self._frequencies
        cosine, sine = angles.cos(), angles.sin()
        if self._magnitude != 1.0:
            cosine, sine = cosine * self._magnitude, sine * self._magnitude
        return (
            torch.cat((cosine, cosine), dim=1).unsqueeze(1),
            torch.cat((-sine, sine), dim=1).unsqueeze(1),
        )


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate the first dimensions of `x` (tokens, heads, head dim) by its positions' angles.

    As many as the angles have; the rest pass unrotated.
    """
    width = cosine.shape[-1]
    if width < x.shape[-1]:
        return torch.cat((rotate(x[..., :width], cosine, sine), x[..., width:]), dim=-1)
    return torch.addcmul(x * cosine, x.roll(width // 2, dims=-1), sine)
