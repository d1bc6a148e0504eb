"""Ranks that share a mixture of experts route every token alike, in every layer."""

import torch
from torch import Tensor

from engine.kernels.linear import Fp32Linear
from engine.layers import GatedMLP, RMSNorm
from engine.layers.experts import MixtureOfExperts
from engine.layers.router import Router
from engine.model_config import Experts
from engine.parallel import Alone
from engine.parallel.group import Group
from engine.shards import Span, split_evenly
from tests.engine.thread_ranks import on_every_rank

HIDDEN, INNER, COUNT, LAYERS = 64, 96, 8, 4
EXPERTS = Experts(count=COUNT, per_token=3, intermediate_size=INNER)


class Weights:
    """Random weights of one layer's experts."""

    def __init__(self, seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        self.router = torch.randn(COUNT, HIDDEN, generator=random) * 0.3
        self.gate = torch.randn(COUNT, INNER, HIDDEN, generator=random) * 0.2
        self.up = torch.randn(COUNT, INNER, HIDDEN, generator=random) * 0.2
        self.down = torch.randn(COUNT, HIDDEN, INNER, generator=random) * 0.2

    def slice(self, span: Span, group: Group) -> MixtureOfExperts:
        parts = [self._expert(index, span) for index in range(COUNT)]
        return MixtureOfExperts(Router(self.router, None, EXPERTS), parts, None, group)

    def _expert(self, index: int, span: Span) -> GatedMLP:
        columns = slice(span.start, span.stop)
        gate_up = torch.cat((self.gate[index, columns], self.up[index, columns]))
        down = self.down[index, :, columns].contiguous()
        return GatedMLP(Fp32Linear(gate_up), Fp32Linear(down), Alone())


@torch.inference_mode()
def run(group: Group) -> tuple[list[Tensor], list[list[int]]]:
    """The normalised input of every layer, and the tokens of each of its experts."""
    x = torch.randn(33, HIDDEN, generator=torch.Generator().manual_seed(9))
    norm = RMSNorm(torch.ones(HIDDEN), 1e-6)
    inputs, tokens = [], []
    for layer in range(LAYERS):
        span = split_evenly(INNER // 32, group.size)[group.rank].times(32)
        experts = Weights(layer).slice(span, group)
        inputs.append(norm(x))
        x = x + experts(inputs[-1])
        tokens.append(experts.tokens.tolist())
    return [*inputs, x], tokens


def test_two_ranks_see_the_same_bits_and_choose_the_same_experts() -> None:
    (first, chosen), (second, chosen_too) = on_every_rank(2, run)
    assert chosen == chosen_too
    for mine, theirs in zip(first, second, strict=True):
        assert torch.equal(mine, theirs)


def test_slices_of_experts_add_up_to_the_whole() -> None:
    alone, chosen = run(Alone())
    (shared, chosen_by_two), _ = on_every_rank(2, run)
    assert chosen == chosen_by_two
    torch.testing.assert_close(shared[-1], alone[-1], rtol=1e-5, atol=1e-5)
