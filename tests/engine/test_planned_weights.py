"""The weights that planning counts are those that a rank builds, for every layer, plan and type."""

from math import prod
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.abilities import FAST_INT8
from engine.checkpoint import Checkpoint, TokenizerMetadata
from engine.checkpoint.blocks import FORMATS
from engine.checkpoint.stored import TensorInfo
from engine.checkpoint.tensors import Layout, expected_shapes
from engine.config import Dtype, EngineConfig, ParallelPlan
from engine.errors import PlanError
from engine.kernels import choose_linear, instruction_sets
from engine.model_config import Experts, LatentAttention, ModelConfig, Rope
from engine.models import load_decoder
from engine.native.library import native
from engine.parallel import Alone, Mesh
from engine.planner import rank_memory
from engine.shards import RankShare, rank_shares
from tests.shapes import SMOLLM2

FLOATS = FORMATS[0]
DTYPES: tuple[Dtype, ...] = ("fp32", "int8", "int4")
"""Those that every processor has."""
FAST = bool(instruction_sets() & FAST_INT8)


class Zeros(Checkpoint):
    """A checkpoint of a given shape whose every number is 0, all of them in one small file."""

    format = "safetensors"
    name = license = "zeros"
    token_count = 0

    def __init__(self, path: Path, model: ModelConfig) -> None:
        shapes = expected_shapes(model)
        tensors = {
            name: TensorInfo(name, shape, FLOATS, 0, 4 * prod(shape), path)
            for name, shape in shapes.items()
        }
        path.write_bytes(bytes(max(info.nbytes for info in tensors.values())))
        super().__init__(path=path, size_bytes=0, config=model, layout=Layout(), tensors=tensors)

    @property
    def tokenizer(self) -> TokenizerMetadata:
        raise AssertionError("a model of zeros speaks to nobody")


@st.composite
def experts(draw: st.DrawFn, layers: int) -> Experts:
    return Experts(
        count=5,
        per_token=2,
        intermediate_size=draw(st.sampled_from([64, 96])),
        correction_bias=draw(st.booleans()),
        shared_size=draw(st.sampled_from([0, 128])),
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
    kv_heads = draw(st.integers(1, 4))
    heads = kv_heads if latent else kv_heads * draw(st.integers(1, 4))
    flags: dict[str, Any] = {"tie_embeddings": draw(st.booleans()), "mlp_bias": draw(st.booleans())}
    if latent is None:
        names = ("qk_norm", "qkv_bias", "output_bias", "post_norms")
        flags |= {name: draw(st.booleans()) for name in names}
    layers = draw(st.integers(2, 3))
    return ModelConfig(
        architecture="any",
        hidden_size=32,
        intermediate_size=draw(st.sampled_from([128, 112])),
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
def plans(draw: st.DrawFn) -> ParallelPlan:
    """Where there are more ranks than KV heads too, and of ranks that are not alike."""
    degrees = draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (1, 3)]))
    tp, ep = degrees
    pp = draw(st.integers(1, 2))
    ranks = tp * pp * ep
    weights = draw(st.none() | st.lists(st.integers(1, 9), min_size=ranks, max_size=ranks))
    return ParallelPlan(tp=tp, pp=pp, ep=ep, weights=tuple(weights or ()))


@settings(max_examples=40, deadline=None)
@given(models(), plans(), st.sampled_from(DTYPES))
def test_a_rank_builds_what_planning_says(
    model: ModelConfig, plan: ParallelPlan, dtype: Dtype
) -> None:
    config = EngineConfig(plan=plan, kv_cache_tokens=32, dtype=dtype)
    try:
        shares = rank_shares(model, config.plan)
    except PlanError:
        assume(False)
    with NamedTemporaryFile() as file:
        checkpoint = Zeros(Path(file.name), model)
        for rank, share in enumerate(shares):
            planned = rank_memory(
                model, config, rank, integer_dot_products=FAST, own_kernels=native() is not None
            )
            assert built_bytes(checkpoint, config, share) == planned.weights


def test_one_rank_holds_every_parameter_of_the_bundled_model() -> None:
    assert rank_memory(SMOLLM2, EngineConfig(), 0).weights == 4 * 134_515_008


def built_bytes(checkpoint: Checkpoint, config: EngineConfig, share: RankShare) -> int:
    mesh, linear = Mesh(Alone(), Alone(), "none"), choose_linear(config)[1]
    decoder = load_decoder(checkpoint, config, share, linear, mesh, lambda fraction, detail: None)
    return decoder.weight_bytes
