"""Gated MLP, for this rank's columns."""

import torch.nn.functional as F
from torch import Tensor

from engine.kernels import Linear
from engine.parallel import Group


class GatedMLP:
    """`gate_up` is column parallel (gate then up), `down` is row parallel."""

    def __init__(self, gate_up: Linear, down: Linear, group: Group) -> None:
        self.gate_up = gate_up
        self.down = down
        self._group = group

    def __call__(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self._group.all_reduce(self.down(F.silu(gate) * up))
