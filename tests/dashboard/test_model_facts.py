"""A model's page tells what it is made of, and nothing that it lacks."""

import msgspec

from dashboard.views.model_facts import model_facts
from engine.model_config import Experts, LatentAttention, Rope, YarnScaling
from tests.shapes import SMOLLM2


def test_a_dense_model_shows_heads_and_mlp_only() -> None:
    facts = dict(model_facts(SMOLLM2))
    assert facts["KV heads"] == "3, so at most 3 ranks share a layer"
    assert facts["MLP size"] == "1536"
    assert facts["KV cache"] == "45.0 KiB a token in fp32"
    assert not {"Experts", "Sliding window", "Latent attention"} & set(facts)


def test_a_single_kv_head_is_told_in_the_singular() -> None:
    facts = dict(model_facts(msgspec.structs.replace(SMOLLM2, num_kv_heads=1)))
    assert facts["KV heads"] == "1, so tensor parallel has to be 1"


def test_experts_window_and_scaling_are_told() -> None:
    shape = msgspec.structs.replace(
        SMOLLM2,
        sliding_window=512,
        sliding_layers=(0, 1, 2),
        rope=Rope(
            theta=1e6,
            dimensions=64,
            scaling=YarnScaling(factor=4, original_context=2048, attention_factor=1.1),
        ),
        experts=Experts(
            count=8, per_token=2, intermediate_size=256, shared_size=512, dense_layers=(0,)
        ),
    )
    facts = dict(model_facts(shape))
    assert facts["Sliding window"] == "512 tokens, in 3 of 30 layers"
    assert facts["Positions"] == "rotary, base 1,000,000, YaRN scaling by 4"
    assert facts["Experts"] == "2 of 8 for each token, of size 256"
    assert facts["Shared expert"] == "512"
    assert facts["MLP size"] == "1536, in 1 layers without experts"


def test_latent_attention_has_no_kv_heads_to_split() -> None:
    latent = LatentAttention(q_rank=None, kv_rank=128, nope_dim=32, rope_dim=32, value_dim=32)
    facts = dict(model_facts(msgspec.structs.replace(SMOLLM2, latent=latent)))
    assert facts["Latent attention"].startswith("one latent of 160 numbers")
    assert "KV heads" not in facts
