"""Experts are chosen and weighted as transformers' own routers do, the same in every batch."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    DeepseekV2Config,
    DeepseekV3Config,
    MixtralConfig,
    PretrainedConfig,
    Qwen3MoeConfig,
)
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2TopkRouter
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter
from transformers.models.mixtral.modeling_mixtral import MixtralTopKRouter
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeTopKRouter

from engine.layers.router import Router, Routing
from engine.model_config import Experts

HIDDEN = 48
COUNT = 16


@dataclass(frozen=True)
class Case:
    module: type[torch.nn.Module]
    config: PretrainedConfig
    experts: Experts


def experts(**changes: Any) -> Experts:
    return Experts(count=COUNT, per_token=3, intermediate_size=8, **changes)


def deepseek_v2(**changes: Any) -> DeepseekV2Config:
    return DeepseekV2Config(
        hidden_size=HIDDEN,
        num_attention_heads=4,
        n_routed_experts=COUNT,
        num_experts_per_tok=3,
        routed_scaling_factor=1.7,
        **changes,
    )


def deepseek_v3(**changes: Any) -> DeepseekV3Config:
    return DeepseekV3Config(
        hidden_size=HIDDEN,
        n_routed_experts=COUNT,
        num_experts_per_tok=3,
        n_group=4,
        topk_group=2,
        routed_scaling_factor=2.5,
        **changes,
    )


def qwen(renormalize: bool) -> Qwen3MoeConfig:
    return Qwen3MoeConfig(
        hidden_size=HIDDEN,
        num_experts=COUNT,
        num_experts_per_tok=3,
        norm_topk_prob=renormalize,
    )


CASES = {
    "mixtral": Case(
        MixtralTopKRouter,
        MixtralConfig(hidden_size=HIDDEN, num_local_experts=COUNT, num_experts_per_tok=3),
        experts(),
    ),
    "qwen3_moe, renormalised": Case(Qwen3MoeTopKRouter, qwen(True), experts()),
    "qwen3_moe, as they are": Case(Qwen3MoeTopKRouter, qwen(False), experts(renormalize=False)),
    "deepseek_v2, any group": Case(
        DeepseekV2TopkRouter,
        deepseek_v2(topk_method="greedy"),
        experts(renormalize=False, scale=1.7),
    ),
    "deepseek_v2, best groups": Case(
        DeepseekV2TopkRouter,
        deepseek_v2(topk_method="group_limited_greedy", n_group=4, topk_group=2),
        experts(renormalize=False, scale=1.7, groups=4, top_groups=2),
    ),
    "deepseek_v3": Case(
        DeepseekV3TopkRouter,
        deepseek_v3(norm_topk_prob=True),
        experts(
            scoring="sigmoid",
            scale=2.5,
            groups=4,
            top_groups=2,
            group_score="top2",
            correction_bias=True,
        ),
    ),
    "deepseek_v3, as they are": Case(
        DeepseekV3TopkRouter,
        deepseek_v3(norm_topk_prob=False),
        experts(
            scoring="sigmoid",
            renormalize=False,
            scale=2.5,
            groups=4,
            top_groups=2,
            group_score="top2",
            correction_bias=True,
        ),
    ),
}


def pair(case: Case, seed: int = 0) -> tuple[torch.nn.Module, Router, Tensor]:
    """transformers' router and ours with the same random weights, and tokens to route."""
    random = torch.Generator().manual_seed(seed)
    weight = torch.randn(COUNT, HIDDEN, generator=random) * 0.2
    bias = torch.randn(COUNT, generator=random) * 0.3 if case.experts.correction_bias else None
    module: Any = case.module(case.config)
    with torch.no_grad():
        module.weight.copy_(weight)
        if bias is not None:
            module.e_score_correction_bias.copy_(bias)
    return module, Router(weight, bias, case.experts), torch.randn(65, HIDDEN, generator=random)


def by_expert(routing: Routing) -> Tensor:
    """Weight of every expert (tokens, experts), 0 for those not chosen."""
    return torch.zeros(len(routing.ids), COUNT).scatter(1, routing.ids, routing.weights)


@pytest.mark.hazard("expert-weights")
@pytest.mark.parametrize("name", CASES)
def test_experts_are_weighted_as_transformers_weights_them(name: str) -> None:
    module, router, x = pair(CASES[name])
    _, weights, ids = module(x)
    expected = by_expert(Routing(ids, weights))
    torch.testing.assert_close(by_expert(router(x)), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_a_token_is_routed_the_same_in_every_batch(name: str) -> None:
    _, router, x = pair(CASES[name], seed=1)
    whole = router(x)
    for count in (1, 2, 3, 5, 8, 17, 32):
        for start in range(0, len(x) - count, 7):
            part = router(x[start : start + count].clone())
            assert torch.equal(part.ids, whole.ids[start : start + count])
            assert torch.equal(part.weights, whole.weights[start : start + count])


@pytest.mark.parametrize("name", CASES)
def test_equal_scores_go_to_the_lower_expert(name: str) -> None:
    case = CASES[name]
    bias = torch.zeros(COUNT) if case.experts.correction_bias else None
    router = Router(torch.ones(COUNT, HIDDEN), bias, case.experts)
    ids = router(torch.randn(9, HIDDEN, generator=torch.Generator().manual_seed(2))).ids
    assert ids.tolist() == [[0, 1, 2]] * 9


def test_a_token_that_is_not_finite_spoils_no_other() -> None:
    for case in CASES.values():
        _, router, x = pair(case)
        spoiled = x.clone()
        spoiled[3, 5], spoiled[7, 1] = float("nan"), float("inf")
        clean, routing = router(x), router(spoiled)
        others = [token for token in range(len(x)) if token not in (3, 7)]
        assert torch.equal(routing.ids[others], clean.ids[others])
        assert torch.equal(routing.weights[others], clean.weights[others])
        assert ((routing.ids >= 0) & (routing.ids < COUNT)).all()
