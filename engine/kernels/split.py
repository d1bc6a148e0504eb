"""A large matrix packed in parts of its rows."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.kernels.linear import Linear


class SplitLinear:
    """Rows packed one part after the other, so that no more than a part is ever float32."""

    def __init__(self, parts: Sequence[Linear]) -> None:
        self.parts = tuple(parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.cat([part(x) for part in self.parts], dim=1)
