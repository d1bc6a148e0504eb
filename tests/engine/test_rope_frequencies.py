"""Every kind of rotary scaling gives the frequencies of the published formula.

The oracle is transformers' table of formulas.
"""

from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from engine.layers.frequencies import rope_frequencies
from engine.layers.rotary import Rotary, rotate
from engine.model_config import (
    DivisorScaling,
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    Rope,
    RopeScaling,
    YarnScaling,
)

DIMENSIONS = 64
PAIRS = DIMENSIONS // 2
SHORT = tuple(1.0 + 0.02 * pair for pair in range(PAIRS))
LONG = tuple(1.0 + 0.7 * pair for pair in range(PAIRS))
YARN = {"factor": 8.0, "original_max_position_embeddings": 4096, "attention_factor": 1.25}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONGROPE = {
    "short_factor": list(SHORT),
    "long_factor": list(LONG),
    "original_max_position_embeddings": 4096,
    "attention_factor": 1.19,
}


def reference(kind: str, settings: dict[str, Any], length: int) -> tuple[torch.Tensor, float]:
    config = LlamaConfig(
        hidden_size=2 * DIMENSIONS,
        num_attention_heads=2,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": kind, "rope_theta": 500_000.0, **settings},
    )
    frequencies, magnitude = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=length)
    return frequencies, float(magnitude)


@pytest.mark.hazard("rope-unknown")
@pytest.mark.parametrize("limit", [1000, 4096, 5000, 131_072])
@pytest.mark.parametrize(
    ("kind", "settings", "scaling"),
    [
        ("linear", {"factor": 8.0}, LinearScaling(8.0)),
        ("dynamic", {"factor": 4.0}, DynamicScaling(4.0, 4096)),
        ("yarn", YARN, YarnScaling(8.0, 4096, 1.25)),
        (
            "yarn",
            {**YARN, "beta_fast": 20.0, "beta_slow": 2.0, "truncate": False},
            YarnScaling(8.0, 4096, 1.25, beta_fast=20.0, beta_slow=2.0, truncate=False),
        ),
        (
            "llama3",
            {**LLAMA3, "original_max_position_embeddings": 4096},
            Llama3Scaling(8.0, 1.0, 4.0, 4096),
        ),
        ("longrope", LONGROPE, LongRopeScaling(SHORT, LONG, 4096, 1.19)),
    ],
    ids=["linear", "dynamic", "yarn", "yarn-untruncated", "llama3", "longrope"],
)
def test_frequencies_are_those_of_the_formula(
    kind: str, settings: dict[str, Any], scaling: RopeScaling, limit: int
) -> None:
    rope = Rope(theta=500_000.0, dimensions=DIMENSIONS, scaling=scaling)
    frequencies, magnitude = rope_frequencies(rope, limit)
    expected, expected_magnitude = reference(kind, settings, limit)
    torch.testing.assert_close(frequencies, expected, rtol=2e-6, atol=0)
    assert magnitude == pytest.approx(expected_magnitude)


def test_a_divisor_a_pair_divides_its_frequency() -> None:
    plain, _ = rope_frequencies(Rope(theta=500_000.0, dimensions=DIMENSIONS), 100)
    scaled, magnitude = rope_frequencies(
        Rope(theta=500_000.0, dimensions=DIMENSIONS, scaling=DivisorScaling(LONG)), 100
    )
    torch.testing.assert_close(scaled * torch.tensor(LONG), plain)
    assert magnitude == 1.0


def test_dimensions_beyond_the_rotated_ones_pass_unchanged() -> None:
    heads = torch.randn(5, 2, 32)
    angles = Rotary(Rope(theta=10_000.0, dimensions=8), 100).angles(torch.arange(5))
    turned = rotate(heads, *angles)
    assert torch.equal(turned[..., 8:], heads[..., 8:])
    torch.testing.assert_close(turned[..., :8], rotate(heads[..., :8].contiguous(), *angles))
    assert not torch.allclose(turned[1:, :, :8], heads[1:, :, :8])


def test_a_magnitude_scales_queries_and_keys_alike() -> None:
    plain = Rotary(Rope(theta=10_000.0, dimensions=8), 100).angles(torch.arange(3))
    scaling = YarnScaling(1.0, 100, attention_factor=1.5)
    scaled = Rotary(Rope(theta=10_000.0, dimensions=8, scaling=scaling), 100)
    for angle, expected in zip(scaled.angles(torch.arange(3)), plain, strict=True):
        torch.testing.assert_close(angle, 1.5 * expected)
