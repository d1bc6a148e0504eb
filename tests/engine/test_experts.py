"""A mixture of experts computes what its formula says, whatever shares the batch."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import Dtype, EngineConfig
from engine.kernels import LinearFactory, choose_linear
from engine.kernels.linear import Fp32Linear
from engine.layers import GatedMLP
from engine.layers.experts import MixtureOfExperts
from engine.layers.router import Router
from engine.model_config import Experts
from engine.parallel import Alone
from engine.spans import Span

HIDDEN, INNER, COUNT = 64, 32, 6
EXPERTS = Experts(count=COUNT, per_token=2, intermediate_size=INNER)


class World:
    """Random weights of one layer, and what is built from them."""

    def __init__(self, seed: int = 0) -> None:
        random = torch.Generator().manual_seed(seed)
        self.router = torch.randn(COUNT, HIDDEN, generator=random) * 0.3
        self.gate_up = torch.randn(COUNT + 1, 2 * INNER, HIDDEN, generator=random) * 0.2
        self.down = torch.randn(COUNT + 1, HIDDEN, INNER, generator=random) * 0.2
        self.x = torch.randn(40, HIDDEN, generator=random)

    def mlp(self, index: int, linear: LinearFactory) -> GatedMLP:
        return GatedMLP(linear(self.gate_up[index]), linear(self.down[index]), Alone())

    def layer(self, linear: LinearFactory = Fp32Linear) -> MixtureOfExperts:
        parts = [self.mlp(index, linear) for index in range(COUNT)]
        router = Router(self.router, None, EXPERTS)
        shared = self.mlp(COUNT, linear)
        return MixtureOfExperts(router, parts, Span(0, COUNT), shared, Alone())

    def expected(self, token: Tensor) -> Tensor:
        """The formula, for one token."""
        scores = (self.router @ token).softmax(dim=0)
        total = self._apply(COUNT, token)
        best = scores.topk(2)
        weights = best.values / best.values.sum()
        for expert, weight in zip(best.indices.tolist(), weights, strict=True):
            total = total + weight * self._apply(expert, token)
        return total

    def _apply(self, index: int, token: Tensor) -> Tensor:
        gate, up = (self.gate_up[index] @ token).chunk(2)
        return self.down[index] @ (F.silu(gate) * up)


@torch.inference_mode()
def test_each_token_is_the_weighted_sum_of_its_experts() -> None:
    world = World()
    expected = torch.stack([world.expected(token) for token in world.x])
    torch.testing.assert_close(world.layer()(world.x), expected, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
@pytest.mark.hazard("batch-numerics")
@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_whole_number_experts_give_a_token_the_same_answer_in_every_batch(dtype: Dtype) -> None:
    world = World(seed=1)
    layer = world.layer(choose_linear(EngineConfig(dtype=dtype))[1])
    whole = layer(world.x)
    for count in (1, 3, 17):
        for start in range(0, 40 - count, 5):
            assert torch.equal(layer(world.x[start : start + count]), whole[start : start + count])


@torch.inference_mode()
def test_the_tokens_of_each_expert_are_counted() -> None:
    layer = World().layer()
    layer(World().x)
    layer(World().x[:3])
    assert int(layer.tokens.sum()) == 43 * EXPERTS.per_token


@torch.inference_mode()
def test_an_expert_that_no_token_wants_computes_nothing() -> None:
    world = World()
    world.router[1:] = world.router[:1]
    layer = world.layer()
    layer(world.x)
    assert layer.tokens.tolist() == [40, 40, 0, 0, 0, 0]
