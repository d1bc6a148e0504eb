"""Ranks that share a mixture of experts route every token alike, in every layer."""

from functools import partial
from typing import Literal

import pytest
import torch
from torch import Tensor

from engine.kernels.linear import Fp32Linear
from engine.layers import GatedMLP, RMSNorm
from engine.layers.experts import MixtureOfExperts
from engine.layers.router import Router
from engine.model_config import Experts
from engine.parallel import Alone
from engine.parallel.group import Group
from engine.spans import Span, split_evenly
from tests.engine.thread_ranks import on_every_rank

HIDDEN, INNER, COUNT, LAYERS = 64, 96, 8, 4
Way = Literal["columns", "experts"]
EXPERTS = Experts(count=COUNT, per_token=3, intermediate_size=INNER)


class Weights:
    """Random weights of one layer's experts."""

    def __init__(self, seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        self.router = torch.randn(COUNT, HIDDEN, generator=random) * 0.3
        self.gate = torch.randn(COUNT, INNER, HIDDEN, generator=random) * 0.2
        self.up = torch.randn(COUNT, INNER, HIDDEN, generator=random) * 0.2
        self.down = torch.randn(COUNT, HIDDEN, INNER, generator=random) * 0.2

    def share(self, way: Way, group: Group) -> MixtureOfExperts:
        """One rank's columns of every expert, or its experts."""
        held, columns = Span(0, COUNT), Span(0, INNER)
        if way == "columns":
            columns = split_evenly(INNER // 32, group.size)[group.rank].times(32)
        else:
            held = split_evenly(COUNT, group.size)[group.rank]
        parts = [self.expert(index, columns) for index in range(held.start, held.stop)]
        router = Router(self.router, None, EXPERTS)
        return MixtureOfExperts(router, parts, held, None, group)

    def expert(self, index: int, span: Span) -> GatedMLP:
        columns = slice(span.start, span.stop)
        gate_up = torch.cat((self.gate[index, columns], self.up[index, columns]))
        down = self.down[index, :, columns].contiguous()
        return GatedMLP(Fp32Linear(gate_up), Fp32Linear(down), Alone())


@torch.inference_mode()
def run(way: Way, group: Group) -> tuple[list[Tensor], list[list[int]]]:
    """The normalised input of every layer, and the tokens of each of its experts."""
    x = torch.randn(33, HIDDEN, generator=torch.Generator().manual_seed(9))
    norm = RMSNorm(torch.ones(HIDDEN), 1e-6)
    inputs, tokens = [], []
    for layer in range(LAYERS):
        experts = Weights(layer).share(way, group)
        inputs.append(norm(x))
        x = x + experts(inputs[-1])
        tokens.append(experts.tokens.tolist())
    return [*inputs, x], tokens


@pytest.mark.parametrize("way", ["columns", "experts"])
def test_all_ranks_see_the_same_bits_and_choose_the_same_experts(way: Way) -> None:
    (first, chosen), *others = on_every_rank(3, partial(run, way))
    for seen, chosen_too in others:
        assert chosen_too == chosen
        for mine, theirs in zip(first, seen, strict=True):
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize("way", ["columns", "experts"])
def test_what_the_ranks_hold_adds_up_to_the_whole(way: Way) -> None:
    alone, chosen = run(way, Alone())
    (shared, chosen_by_all), *_others = on_every_rank(3, partial(run, way))
    assert chosen == chosen_by_all
    torch.testing.assert_close(shared[-1], alone[-1], rtol=1e-5, atol=3e-5)


@torch.inference_mode()
def test_a_rank_whose_experts_nobody_chose_adds_nothing() -> None:
    x = torch.randn(1, HIDDEN, generator=torch.Generator().manual_seed(1))
    weights = Weights(0)
    chosen = Router(weights.router, None, EXPERTS)(x).ids.flatten().tolist()
    idle = next(index for index in range(COUNT) if index not in chosen)
    part = weights.expert(idle, Span(0, INNER))
    router = Router(weights.router, None, EXPERTS)
    experts = MixtureOfExperts(router, [part], Span(idle, idle + 1), None, Alone())
    assert torch.equal(experts(x), torch.zeros_like(x))
    assert int(experts.tokens.sum()) == EXPERTS.per_token
