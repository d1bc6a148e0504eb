"""What a GGUF file declares and this engine does not compute is refused by name."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.checkpoint import open_checkpoint
from engine.errors import CheckpointError
from engine.model_config import LinearScaling, ModelConfig, YarnScaling
from tests.engine.gguf_models import write_gguf
from tests.engine.hf_models import write_hf_model
from tests.engine.tiny_model import HEAD_DIM, write_tiny_model

Declare = Callable[[gguf.GGUFWriter], None]


@pytest.mark.parametrize(
    ("declare", "wanted"),
    [
        (
            lambda to: to.add_rope_scaling_type(gguf.RopeScalingType.YARN),
            "scaling.factor' is missing",
        ),
        (
            lambda to: to.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE),
            "tensor 'rope_factors_short.weight' is missing",
        ),
        (
            lambda to: to.add_string("llama.attention.sliding_window", "wide"),
            "should be an integer of at least 0",
        ),
        (lambda to: to.add_expert_count(4), "expert_used_count' is missing"),
        (lambda to: to.add_logit_scale(0.5), "llama.logit_scale is set"),
        (lambda to: to.add_causal_attention(False), "llama.attention.causal is set"),
        (lambda to: to.add_rope_dimension_sections([1, 2, 3, 0]), "dimension_sections is set"),
        (lambda to: to.add_head_count_kv([3, 3, 3]), "positive integer, not an array"),
        (lambda to: to.add_value_length(16), "values and keys of different width"),
        (lambda to: to.add_rope_dimension_count(33), "over 33 of 32 dimensions"),
        (lambda to: to.add_rope_scaling_yarn_ext_factor(0.5), None),
        (lambda to: to.add_logit_scale(1.0), None),
    ],
)
def test_a_declaration_is_honoured_or_refused(
    tmp_path: Path, declare: Declare, wanted: str | None
) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", declare=declare)
    if wanted is None:
        assert open_checkpoint(path).config.rope.dimensions == HEAD_DIM
        return
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(path)
    assert str(caught.value).startswith("m.gguf: ")
    assert wanted in str(caught.value)


def described(path: Path, declare: Declare) -> ModelConfig:
    return open_checkpoint(write_tiny_model(path / "m.gguf", declare=declare)).config


def test_a_window_counts_in_the_layers_that_the_file_names(tmp_path: Path) -> None:
    def some(to: gguf.GGUFWriter) -> None:
        to.add_sliding_window(8)
        to.add_sliding_window_pattern([True, False, True])

    assert described(tmp_path, lambda to: to.add_sliding_window(8)).sliding_layers == (0, 1, 2)
    assert described(tmp_path, some).sliding_layers == (0, 2)
    assert described(tmp_path, lambda to: None).sliding_window is None


def test_a_part_of_a_head_may_rotate(tmp_path: Path) -> None:
    assert described(tmp_path, lambda to: to.add_rope_dimension_count(16)).rope.dimensions == 16


def test_linear_and_yarn_scaling_are_read(tmp_path: Path) -> None:
    def scaled(kind: gguf.RopeScalingType) -> Declare:
        def declare(to: gguf.GGUFWriter) -> None:
            to.add_rope_scaling_type(kind)
            to.add_rope_scaling_factor(4.0)
            to.add_rope_scaling_orig_ctx_len(128)

        return declare

    linear = described(tmp_path, scaled(gguf.RopeScalingType.LINEAR)).rope.scaling
    assert linear == LinearScaling(4.0)
    yarn = described(tmp_path, scaled(gguf.RopeScalingType.YARN)).rope.scaling
    assert isinstance(yarn, YarnScaling)
    assert (yarn.factor, yarn.original_context) == (4.0, 128)
    assert yarn.attention_factor == pytest.approx(1.1386294)
    old = described(tmp_path, lambda to: to.add_float32("llama.rope.scale_linear", 2.0))
    assert old.rope.scaling == LinearScaling(2.0)


@pytest.fixture(scope="module")
def latent(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("latent")
    model = write_hf_model(folder / "folder", "deepseek_v2")
    return write_gguf(model, folder / "model.gguf").read_bytes()


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(share=st.floats(0, 1), value=st.binary(min_size=1, max_size=4))
def test_any_damage_to_a_mixture_with_latents_is_refused_or_harmless(
    tmp_path: Path, latent: bytes, share: float, value: bytes
) -> None:
    at = int(share * (latent.index(b"output_norm.weight") + 60))
    path = tmp_path / "fuzzed.gguf"
    path.write_bytes(latent[:at] + value + latent[at + len(value) :])
    with suppress(CheckpointError):
        checkpoint = open_checkpoint(path)
        assert checkpoint.tokenizer.tokens


def test_a_stack_of_too_few_experts_is_refused(tmp_path: Path, latent: bytes) -> None:
    key = b"deepseek2.expert_count"
    at = latent.index(key) + len(key) + 4
    path = tmp_path / "m.gguf"
    path.write_bytes(latent[:at] + b"\x0c" + latent[at + 1 :])
    with pytest.raises(CheckpointError, match=r"ffn_gate_inp\.weight' has shape \[8, 64\]"):
        open_checkpoint(path)
