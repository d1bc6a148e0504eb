"""An accepted plan covers the model exactly once; any other is refused with a remedy."""

from collections.abc import Iterable
from itertools import pairwise

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.config import ParallelPlan
from engine.errors import PlanError
from engine.model_config import Experts, LatentAttention, ModelConfig, Rope
from engine.shards import MLP_UNIT, RankShare, check_plan, rank_share, rank_shares
from engine.spans import Span
from tests.engine.test_spans import covers
from tests.shapes import SMOLLM2

LATENT = LatentAttention(q_rank=None, kv_rank=16, nope_dim=8, rope_dim=8, value_dim=8)
MIXTURE = Experts(count=8, per_token=2, intermediate_size=128, shared_size=512, dense_layers=(0,))


@st.composite
def experts(draw: st.DrawFn) -> Experts:
    return Experts(
        count=draw(st.integers(2, 20)),
        per_token=2,
        intermediate_size=draw(st.integers(1, 600)),
        shared_size=draw(st.sampled_from([0, 600])),
        dense_layers=draw(st.sampled_from([(), (0,)])),
    )


@st.composite
def models(draw: st.DrawFn) -> ModelConfig:
    kv_heads = draw(st.integers(1, 12))
    return ModelConfig(
        architecture="llama",
        hidden_size=draw(st.integers(1, 20)) * 32,
        intermediate_size=draw(st.integers(1, 2000)),
        num_layers=draw(st.integers(1, 40)),
        num_heads=kv_heads * draw(st.integers(1, 8)),
        num_kv_heads=kv_heads,
        head_dim=draw(st.sampled_from([16, 32, 64])),
        vocab_size=draw(st.integers(64, 5000)),
        context_length=128,
        rope=Rope(theta=1e4, dimensions=64),
        rms_norm_eps=1e-5,
        tie_embeddings=draw(st.booleans()),
        latent=draw(st.sampled_from([None, LATENT])),
        experts=draw(st.none() | experts()),
    )


@st.composite
def plans(draw: st.DrawFn) -> ParallelPlan:
    degrees = {name: draw(st.integers(1, 5)) for name in ("tp", "pp", "ep")}
    ranks = degrees["tp"] * degrees["pp"] * degrees["ep"]
    weights = draw(st.none() | st.lists(st.integers(1, 1000), min_size=ranks, max_size=ranks))
    return ParallelPlan(**degrees, weights=tuple(weights or ()))


def shares_of(model: ModelConfig, plan: ParallelPlan) -> list[list[RankShare]]:
    """By stage; what the plan cannot split is no example."""
    try:
        shares = rank_shares(model, plan)
    except PlanError:
        assume(False)
    width = plan.width
    return [shares[first : first + width] for first in range(0, len(shares), width)]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Without repetitions of neighbours."""
    return list(dict.fromkeys(spans))


@given(models(), plans())
def test_the_ranks_of_a_stage_cover_its_layers_exactly(
    model: ModelConfig, plan: ParallelPlan
) -> None:
    for stage in shares_of(model, plan):
        assert covers([share.heads for share in stage], model.num_heads)
        assert covers([share.intermediate for share in stage], model.intermediate_size)
        assert covers([share.vocab for share in stage], model.vocab_size)
        assert all(min(share.heads.size, share.vocab.size) > 0 for share in stage)
        assert all(
            share.intermediate.start % MLP_UNIT == 0 for share in stage if share.intermediate.size
        )
        shared = model.experts.shared_size if model.experts else 0
        assert covers([share.shared_columns for share in stage], shared)


@given(models(), plans())
def test_stages_cover_the_layers_and_each_has_some(model: ModelConfig, plan: ParallelPlan) -> None:
    stages = shares_of(model, plan)
    assert covers([stage[0].layers for stage in stages], model.num_layers)
    for stage in stages:
        assert len({share.layers for share in stage}) == 1
        assert stage[0].layers.size


@given(models(), plans())
def test_each_query_head_lies_with_the_kv_head_that_it_reads(
    model: ModelConfig, plan: ParallelPlan
) -> None:
    assume(model.latent is None)
    for stage in shares_of(model, plan):
        assert covers(merged(share.kv_heads for share in stage), model.num_kv_heads)
        for share in stage:
            read = {
                head // model.kv_group_size for head in range(*msgspec.to_builtins(share.heads))
            }
            assert read == set(range(*msgspec.to_builtins(share.kv_heads)))
        if plan.width > model.num_kv_heads:
            assert all(share.kv_heads.size == 1 for share in stage)
        else:
            assert covers([share.kv_heads for share in stage], model.num_kv_heads)


@given(models(), plans())
def test_groups_cover_the_experts_and_their_ranks_the_columns(
    model: ModelConfig, plan: ParallelPlan
) -> None:
    assume(model.experts is not None)
    assert model.experts is not None
    for stage in shares_of(model, plan):
        groups = [stage[first : first + plan.tp] for first in range(0, plan.width, plan.tp)]
        assert covers([group[0].experts for group in groups], model.experts.count)
        for group in groups:
            assert len({share.experts for share in group}) == 1
            columns = [share.expert_columns for share in group]
            assert covers(columns, model.experts.intermediate_size)
            assert all(span.size for span in [*columns, group[0].experts])


@given(models(), plans())
def test_who_weighs_more_holds_no_less(model: ModelConfig, plan: ParallelPlan) -> None:
    assume(plan.weights)
    for stage in shares_of(model, plan):
        order = sorted(stage, key=lambda share: plan.weights[share.rank])
        for light, heavy in pairwise(order):
            if plan.weights[light.rank] < plan.weights[heavy.rank]:
                assert light.vocab.size <= heavy.vocab.size
                if plan.width <= model.num_kv_heads:
                    assert light.kv_heads.size <= heavy.kv_heads.size


def test_three_kv_heads_over_two_ranks_split_two_and_one() -> None:
    first, second = rank_shares(SMOLLM2, ParallelPlan(tp=2))
    assert (first.kv_heads, second.kv_heads) == (Span(0, 2), Span(2, 3))
    assert (first.heads, second.heads) == (Span(0, 6), Span(6, 9))
    assert (first.intermediate, second.intermediate) == (Span(0, 768), Span(768, 1536))


def test_three_kv_heads_over_four_ranks_hold_one_of_them_twice() -> None:
    shares = rank_shares(SMOLLM2, ParallelPlan(tp=4))
    assert [share.kv_heads for share in shares] == [Span(0, 1), Span(0, 1), Span(1, 2), Span(2, 3)]
    assert [share.heads for share in shares] == [Span(0, 2), Span(2, 3), Span(3, 6), Span(6, 9)]


def test_weights_say_which_kv_head_is_held_twice() -> None:
    shares = rank_shares(SMOLLM2, ParallelPlan(tp=4, weights=(3, 3, 1, 2)))
    assert [share.heads.size for share in shares] == [3, 3, 1, 2]


def test_a_bigger_box_takes_more_layers_columns_and_rows() -> None:
    plan = ParallelPlan(tp=2, pp=2, weights=(2, 1, 4, 2))
    shares = rank_shares(SMOLLM2, plan)
    assert [share.layers.size for share in shares] == [10, 10, 20, 20]
    assert [share.intermediate.size for share in shares] == [1024, 512, 1024, 512]
    assert [share.vocab.size for share in shares] == [32768, 16384, 32768, 16384]


def test_a_model_without_experts_takes_expert_groups_as_more_ranks() -> None:
    wide = rank_shares(SMOLLM2, ParallelPlan(tp=2, ep=2))
    assert wide == rank_shares(SMOLLM2, ParallelPlan(tp=4))


def mixture(**changes: int) -> ModelConfig:
    parts = msgspec.structs.replace(MIXTURE, **changes)
    return msgspec.structs.replace(SMOLLM2, experts=parts)


@pytest.mark.parametrize(
    ("model", "plan", "remedy"),
    [
        (SMOLLM2, "tp=10", "make tp × ep 9 or less, and use pp"),
        (SMOLLM2, "tp=2,ep=5", "make tp × ep 9 or less, and use pp"),
        (SMOLLM2, "pp=31", "pp=30 or less"),
        (mixture(), "tp=5", "tp=4 or less, and ep for more ranks"),
        (mixture(), "ep=9", "ep=8 or less, and tp for more ranks"),
        (mixture(shared_size=96), "tp=4", "MLP of 96 columns .* make tp × ep 3 or less"),
        (msgspec.structs.replace(SMOLLM2, intermediate_size=96), "ep=4", "tp × ep 3 or less"),
        (msgspec.structs.replace(SMOLLM2, vocab_size=2), "tp=3", "tp × ep 2 or less"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_with_the_remedy(
    model: ModelConfig, plan: str, remedy: str
) -> None:
    with pytest.raises(PlanError, match=remedy):
        check_plan(model, ParallelPlan.parse(plan))


def test_a_rank_outside_the_plan_is_refused() -> None:
    with pytest.raises(PlanError, match="there is no 2"):
        rank_share(SMOLLM2, ParallelPlan(tp=2), 2)
