"""Rotary scaling is read alike in both wordings of config.json; an unknown type is refused."""

from typing import Any

import pytest
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from engine.checkpoint.folder.config import read_config
from engine.errors import CheckpointError
from engine.model_config import (
    DynamicScaling,
    LinearScaling,
    LongRopeScaling,
    ModelConfig,
    Rope,
    YarnScaling,
)
from tests.engine.published_configs import GEMMA_4B, LLAMA_32, QWEN_25


def read(raw: dict[str, Any], **changes: Any) -> ModelConfig:
    return read_config("model", {**raw, **changes}).model


def refusal(raw: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(CheckpointError) as caught:
        read(raw, **changes)
    return str(caught.value)


SCALINGS: list[dict[str, Any]] = [
    {"type": "linear", "factor": 2.0},
    {"rope_type": "dynamic", "factor": 4.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
    {"rope_type": "yarn", "factor": 4.0},
    {"rope_type": "yarn", "factor": 4.0, "attention_factor": 0.8, "truncate": False},
    {"type": "yarn", "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.8, "beta_fast": 16},
    {
        "rope_type": "longrope",
        "short_factor": [1.0] * 32,
        "long_factor": [2.0] * 32,
        "original_max_position_embeddings": 4096,
        "factor": 32.0,
    },
    {
        "rope_type": "longrope",
        "short_factor": [1.0] * 32,
        "long_factor": [2.0] * 32,
        "original_max_position_embeddings": 4096,
        "attention_factor": 1.25,
        "factor": 32.0,
    },
]


@pytest.mark.hazard("rope-unknown")
@pytest.mark.parametrize("scaling", SCALINGS, ids=str)
def test_both_wordings_of_rotary_scaling_mean_what_transformers_computes(
    scaling: dict[str, Any],
) -> None:
    older = read(LLAMA_32, rope_scaling=scaling).rope
    both = {**scaling, "rope_theta": 500_000.0}
    newer = read(LLAMA_32, rope_scaling=None, rope_theta=None, rope_parameters=both).rope
    assert older == newer
    config: Any = transformers.LlamaConfig(**{**LLAMA_32, "rope_scaling": dict(scaling)})
    kind = config.rope_parameters["rope_type"]
    _frequencies, attention = ROPE_INIT_FUNCTIONS[kind](config, None)
    assert getattr(older.scaling, "attention_factor", 1.0) == pytest.approx(attention)
    kinds = {
        "linear": LinearScaling,
        "dynamic": DynamicScaling,
        "yarn": YarnScaling,
        "longrope": LongRopeScaling,
    }
    assert isinstance(older.scaling, kinds[kind])
    if isinstance(older.scaling, YarnScaling | LongRopeScaling):
        known = config.rope_parameters["original_max_position_embeddings"]
        assert older.scaling.original_context == known


def test_half_a_head_may_rotate() -> None:
    assert read(LLAMA_32, rope_scaling=None, partial_rotary_factor=0.5).rope == Rope(
        theta=500_000.0, dimensions=32
    )


def test_gemma_tells_both_kinds_of_layers_apart_in_the_newer_words() -> None:
    nested = {
        "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 2e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 3e4},
    }
    inner = {**GEMMA_4B["text_config"], "rope_scaling": None, "rope_parameters": nested}
    model = read(inner)
    assert model.rope == Rope(theta=2e6, dimensions=256, scaling=LinearScaling(4.0))
    assert model.local_rope == Rope(theta=3e4, dimensions=256)


@pytest.mark.hazard("rope-unknown")
def test_an_unknown_rotary_type_is_refused_by_name() -> None:
    message = refusal(LLAMA_32, rope_scaling={"rope_type": "spiral", "factor": 2.0})
    assert "rotary scaling of type 'spiral' is not supported; supported: default" in message
    assert "'mrope'" in refusal(QWEN_25, rope_scaling={"type": "mrope", "mrope_section": [1]})
