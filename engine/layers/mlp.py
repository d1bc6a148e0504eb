"""Gated MLP, for this rank's columns."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from engine.kernels import Linear
from engine.model_config import Activation
from engine.parallel import Group


class GatedMLP:
    """`gate_up` is column parallel (gate then up), `down` is row parallel."""

    def __init__(
        self, gate_up: Linear, down: Linear, group: Group, activation: Activation = "silu"
    ) -> None:
        self.gate_up = gate_up
        self.down = down
        self.group = group
        self.activation = activation
        self._activate = ACTIVATIONS[activation]

    def __call__(self, x: Tensor) -> Tensor:
        """(tokens, hidden) to the same, summed over the group."""
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.group.all_reduce(self.down(self._activate(gate) * up))


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by its tanh approximation (arXiv 1606.08415)."""
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"silu": F.silu, "gelu_tanh": gelu_tanh}
