"""config.json means what it means in transformers; what is not computed is refused by name."""

from typing import Any

import pytest

from engine.checkpoint.folder.config import FolderConfig, read_config
from engine.errors import CheckpointError
from engine.model_config import Experts, LinearScaling, Llama3Scaling, Rope
from tests.engine.published_configs import (
    DEEPSEEK_V2_LITE,
    DEEPSEEK_V3,
    GEMMA_4B,
    LLAMA_32,
    MISTRAL,
    MIXTRAL,
    QWEN_25,
)


def read(raw: dict[str, Any], **changes: Any) -> FolderConfig:
    return read_config("model", {**raw, **changes})


def refusal(raw: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(CheckpointError) as caught:
        read(raw, **changes)
    message = str(caught.value)
    assert message.startswith("model: ")
    return message


def test_llama_and_its_rotary_scaling() -> None:
    model = read(LLAMA_32).model
    assert model.rope == Rope(
        theta=500_000.0, dimensions=64, scaling=Llama3Scaling(32.0, 1.0, 4.0, 8192)
    )
    assert model.tie_embeddings
    assert (model.head_dim, model.num_kv_heads, model.sliding_layers) == (64, 8, ())
    assert not model.qkv_bias


def test_a_window_in_every_layer_unless_it_is_null() -> None:
    assert read(MISTRAL).model.sliding_layers == tuple(range(32))
    assert read(MISTRAL).model.sliding_window == 4096
    assert read(MISTRAL, sliding_window=None).model.sliding_window is None
    without = {key: value for key, value in MISTRAL.items() if key != "sliding_window"}
    assert read(without).model.sliding_window == 4096, "what its class in transformers assumes"


def test_qwen_slides_only_where_it_is_told_to() -> None:
    assert read(QWEN_25).model.sliding_window is None
    model = read(QWEN_25, use_sliding_window=True).model
    assert model.sliding_layers == tuple(range(20, 28))
    assert model.qkv_bias
    assert not model.output_bias


def test_gemma_is_mostly_defaults() -> None:
    found = read(GEMMA_4B)
    model = found.model
    assert found.layout.norm_offset == 1.0
    assert model.architecture == "gemma3"
    assert (model.num_heads, model.num_kv_heads, model.head_dim) == (8, 4, 256)
    assert model.vocab_size == 262_208
    assert model.sliding_layers == tuple(layer for layer in range(34) if layer % 6 != 5)
    assert model.rope == Rope(theta=1e6, dimensions=256, scaling=LinearScaling(8.0))
    assert model.local_rope == Rope(theta=1e4, dimensions=256)
    assert model.embedding_scale == 2560**0.5
    assert model.score_scale == 256**-0.5
    assert model.activation == "gelu_tanh"
    assert model.tie_embeddings
    assert model.post_norms
    assert model.qk_norm


def test_mixtral_weighs_its_chosen_experts_anew() -> None:
    assert read(MIXTRAL).model.experts == Experts(count=8, per_token=2, intermediate_size=14336)
    assert read(MIXTRAL).model.rope.theta == 1e6
    assert read(MIXTRAL).model.sliding_layers == ()


def test_deepseek_lite_has_whole_queries_and_no_groups() -> None:
    found = read(DEEPSEEK_V2_LITE)
    model, experts = found.model, found.model.experts
    assert found.layout.rotary == "interleaved"
    assert model.latent is not None
    assert model.latent.q_rank is None
    assert model.latent.cache_width == 576
    assert experts is not None
    assert (experts.groups, experts.shared_size, experts.dense_layers) == (1, 2816, (0,))
    assert not experts.renormalize
    assert experts.scoring == "softmax"
    assert model.head_dim == 192


def test_deepseek_v3_scores_by_sigmoid_in_groups() -> None:
    found = read(DEEPSEEK_V3)
    experts = found.model.experts
    assert found.extra_layers == 1
    assert experts == Experts(
        count=256,
        per_token=8,
        intermediate_size=2048,
        scoring="sigmoid",
        renormalize=True,
        scale=2.5,
        groups=8,
        top_groups=4,
        group_score="top2",
        correction_bias=True,
        shared_size=2048,
        dense_layers=(0, 1, 2),
    )
    temperature = 0.1 * 3.6888794541139363 + 1.0
    assert found.model.score_scale == pytest.approx(192**-0.5 * temperature**2)


def test_layers_between_every_second_are_dense() -> None:
    raw = {**QWEN_25, "model_type": "qwen3_moe", "head_dim": 128, "num_experts": 8}
    found = read(raw, decoder_sparse_step=2, mlp_only_layers=[3], num_experts_per_tok=2).model
    assert found.experts is not None
    assert found.experts.dense_layers == (0, 2, 3, *range(4, 28, 2))
    assert not found.experts.renormalize, "the class's own default"
    newer = read({**raw, "num_experts": None}, num_local_experts=8, num_experts_per_tok=2).model
    assert newer.experts is not None
    assert newer.experts.count == 8


@pytest.mark.parametrize(
    ("raw", "changes", "wanted"),
    [
        (
            LLAMA_32,
            {"model_type": "mamba"},
            "architecture 'mamba' is not supported; supported: llama",
        ),
        (LLAMA_32, {"model_type": None}, "'model_type' is missing"),
        (LLAMA_32, {"hidden_act": "gelu"}, "activation 'gelu' is not supported; supported: silu"),
        (LLAMA_32, {"hidden_size": "2048"}, "'hidden_size' should be a positive integer"),
        (LLAMA_32, {"num_key_value_heads": 7}, "32 heads cannot share 7 KV heads evenly"),
        (LLAMA_32, {"num_hidden_layers": 10**6}, "1000000 layers cannot be real"),
        (LLAMA_32, {"partial_rotary_factor": 2.0}, "over 128 of 64 dimensions"),
        (LLAMA_32, {"rope_scaling": [1]}, "'rope_scaling' should be an object"),
        (LLAMA_32, {"rope_scaling": {"rope_type": "linear"}}, "'factor' is missing"),
        (LLAMA_32, {"tie_word_embeddings": "yes"}, "should be true or false"),
        (LLAMA_32, {"quantization_config": {"quant_method": "fp8"}}, "quantised with 'fp8'"),
        (LLAMA_32, {"attention_chunk_size": 8192}, "attention_chunk_size is set"),
        (LLAMA_32, {"layer_types": ["chunked_attention"] * 16}, "attention of kind 'chunked"),
        (
            QWEN_25,
            {"use_sliding_window": True, "layer_types": ["full_attention"]},
            "lists 1 layers",
        ),
        (
            QWEN_25,
            {"sliding_window": None, "layer_types": ["sliding_attention"] * 28},
            "sliding_window is missing",
        ),
        (
            QWEN_25,
            {"rope_parameters": {"full_attention": {"rope_type": "default"}}},
            "for each layer type",
        ),
        (GEMMA_4B, {"text_config": None}, "'text_config' should be an object"),
        (
            GEMMA_4B["text_config"],
            {"use_bidirectional_attention": True},
            "attention in both directions",
        ),
        (
            GEMMA_4B["text_config"],
            {"rope_parameters": {"rope_type": "default"}},
            "for each layer type (full and sliding)",
        ),
        (MIXTRAL, {"num_experts_per_tok": 9}, "9 of 8 experts cannot be chosen"),
        (DEEPSEEK_V2_LITE, {"norm_topk_prob": True}, "norm_topk_prob=true is not supported"),
        (DEEPSEEK_V2_LITE, {"topk_method": "best"}, "topk_method 'best' is not supported"),
        (DEEPSEEK_V2_LITE, {"attention_bias": True}, "attention_bias is set"),
        (DEEPSEEK_V2_LITE, {"moe_layer_freq": 2}, "moe_layer_freq other than 1"),
        (DEEPSEEK_V3, {"scoring_func": "softmax"}, "scoring_func 'softmax' is not supported"),
        (DEEPSEEK_V3, {"n_group": 7}, "in 4 of 7 groups cannot be chosen"),
        (DEEPSEEK_V3, {"topk_group": 9}, "in 9 of 8 groups cannot be chosen"),
    ],
)
def test_what_would_be_computed_wrongly_is_refused_by_name(
    raw: dict[str, Any], changes: dict[str, Any], wanted: str
) -> None:
    assert wanted in refusal(raw, **changes)
