"""An accepted plan covers the model exactly once; any other is refused with a remedy."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.config import ParallelPlan
from engine.errors import PlanError
from engine.model_config import ModelConfig, Rope
from engine.shards import MLP_UNIT, Span, rank_share, rank_shares, split_evenly
from tests.shapes import SMOLLM2


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
    )


def covers(spans: list[Span], total: int) -> bool:
    edges = [span.start for span in spans] + [total]
    return edges[0] == 0 and [span.stop for span in spans] == edges[1:]


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_an_even_split_covers_everything_and_differs_by_at_most_one(total: int, parts: int) -> None:
    spans = split_evenly(total, parts)
    assert len(spans) == parts
    assert covers(spans, total)
    assert max(span.size for span in spans) - min(span.size for span in spans) <= 1


@given(models(), st.integers(1, 12), st.integers(1, 12))
def test_shares_cover_heads_columns_vocabulary_and_layers_exactly(
    model: ModelConfig, tp: int, pp: int
) -> None:
    assume(tp <= model.num_kv_heads and pp <= model.num_layers)
    assume(tp <= -(-model.intermediate_size // MLP_UNIT))
    plan = ParallelPlan(tp=tp, pp=pp)
    shares = rank_shares(model, plan)
    for stage in range(pp):
        group = [share for share in shares if share.stage == stage]
        assert covers([share.heads for share in group], model.num_heads)
        assert covers([share.kv_heads for share in group], model.num_kv_heads)
        assert covers([share.intermediate for share in group], model.intermediate_size)
        assert covers([share.vocab for share in group], model.vocab_size)
        assert all(share.intermediate.start % MLP_UNIT == 0 for share in group)
        assert all(min(s.kv_heads.size, s.intermediate.size, s.vocab.size) > 0 for s in group)
    assert covers([share.layers for share in shares if share.stage_rank == 0], model.num_layers)


def test_three_kv_heads_over_two_ranks_split_two_and_one() -> None:
    first, second = rank_shares(SMOLLM2, ParallelPlan(tp=2))
    assert (first.kv_heads, second.kv_heads) == (Span(0, 2), Span(2, 3))
    assert (first.heads, second.heads) == (Span(0, 6), Span(6, 9))
    assert (first.intermediate, second.intermediate) == (Span(0, 768), Span(768, 1536))


@pytest.mark.parametrize(
    ("plan", "remedy"),
    [
        (ParallelPlan(tp=4), "tp=3 or less"),
        (ParallelPlan(pp=31), "pp=30 or less"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_with_the_remedy(
    plan: ParallelPlan, remedy: str
) -> None:
    with pytest.raises(PlanError, match=remedy):
        rank_share(SMOLLM2, plan, 0)


def test_a_rank_outside_the_plan_is_refused() -> None:
    with pytest.raises(PlanError, match="there is no 2"):
        rank_share(SMOLLM2, ParallelPlan(tp=2), 2)
