"""What planning says a rank holds is what the rank builds, for every kind of layer and plan."""

from typing import Any

import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.abilities import FAST_INT8, possible_dtypes
from engine.checkpoint.tensors import Layout, expected_shapes, rank_tensors
from engine.config import INT4_GROUPS, KV_DTYPES, EngineConfig, ParallelPlan
from engine.errors import PlanError
from engine.kernels import choose_head, choose_linear, instruction_sets
from engine.model_config import Experts, LatentAttention, ModelConfig, Rope
from engine.models.blueprint import Blueprint
from engine.models.builder import build_decoder
from engine.models.decoder import Decoder
from engine.models.loading import make_cache
from engine.models.weights import RankWeights
from engine.parallel import Alone, Mesh
from engine.planner import rank_memory
from engine.shards import RankShare, Span, rank_share


class Zeros:
    """A source of weights of the right shapes; each tensor is handed out once."""

    def __init__(self, model: ModelConfig, share: RankShare) -> None:
        self._shapes = expected_shapes(model)
        self.unread = rank_tensors(model, share)

    def rows(self, name: str, span: Span) -> torch.Tensor:
        self.unread.remove(name)
        assert span.stop <= self._shapes[name][0]
        return torch.zeros(span.size, self._shapes[name][1])

    def columns(self, name: str, span: Span) -> torch.Tensor:
        self.unread.remove(name)
        assert span.stop <= self._shapes[name][1]
        return torch.zeros(self._shapes[name][0], span.size)

    def vector(self, name: str) -> torch.Tensor:
        self.unread.remove(name)
        (size,) = self._shapes[name]
        return torch.zeros(size)


@st.composite
def experts(draw: st.DrawFn, layers: int) -> Experts:
    return Experts(
        count=4,
        per_token=2,
        intermediate_size=draw(st.sampled_from([64, 96])),
        correction_bias=draw(st.booleans()),
        shared_size=draw(st.sampled_from([0, 64])),
        dense_layers=tuple(range(draw(st.integers(0, layers)))),
    )


@st.composite
def models(draw: st.DrawFn) -> ModelConfig:
    latent = draw(
        st.none()
        | st.builds(
            LatentAttention,
            q_rank=st.sampled_from([None, 24]),
            kv_rank=st.just(16),
            nope_dim=st.just(8),
            rope_dim=st.just(8),
            value_dim=st.sampled_from([8, 12]),
        )
    )
    kv_heads = draw(st.integers(2, 4))
    heads = kv_heads if latent else kv_heads * draw(st.integers(1, 3))
    flags: dict[str, Any] = {"tie_embeddings": draw(st.booleans()), "mlp_bias": draw(st.booleans())}
    if latent is None:
        names = ("qk_norm", "qkv_bias", "output_bias", "post_norms")
        flags |= {name: draw(st.booleans()) for name in names}
    layers = draw(st.integers(2, 3))
    return ModelConfig(
        architecture="any",
        hidden_size=32,
        intermediate_size=draw(st.sampled_from([64, 80])),
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=16,
        vocab_size=50,
        context_length=64,
        rope=Rope(theta=1e4, dimensions=8 if latent else 16),
        rms_norm_eps=1e-5,
        latent=latent,
        experts=draw(st.none() | experts(layers)),
        **flags,
    )


@st.composite
def configs(draw: st.DrawFn) -> EngineConfig:
    possible = possible_dtypes(instruction_sets())
    return EngineConfig(
        plan=ParallelPlan(tp=draw(st.integers(1, 3)), pp=draw(st.integers(1, 2))),
        dtype=draw(st.sampled_from(possible)),
        kv_dtype=draw(st.sampled_from(KV_DTYPES)),
        int4_group=draw(st.sampled_from(INT4_GROUPS)),
        kv_cache_tokens=32,
    )


@settings(max_examples=40, deadline=None)
@given(models(), configs())
def test_a_rank_builds_what_planning_says(model: ModelConfig, config: EngineConfig) -> None:
    dot_products = bool(FAST_INT8 & instruction_sets())
    for rank in range(config.plan.world_size):
        try:
            need = rank_memory(model, config, rank, integer_dot_products=dot_products)
        except PlanError:
            assume(False)
        decoder = built(model, config, rank_share(model, config.plan, rank))
        assert decoder.weight_bytes == need.weights
        assert decoder.cache.nbytes == need.kv


def built(model: ModelConfig, config: EngineConfig, share: RankShare) -> Decoder:
    source: Any = Zeros(model, share)
    linear = choose_linear(config)[1]
    weights = RankWeights(source, Layout(), linear, choose_head(config))
    mesh = Mesh(Alone(), Alone(), "none")
    blueprint = Blueprint(model, share, weights, make_cache(model, config, share), mesh)
    decoder = build_decoder(blueprint, config)
    assert not source.unread
    return decoder
