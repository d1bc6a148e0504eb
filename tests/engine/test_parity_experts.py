"""The settings of routers and of latent attention that the parity grid's models leave out."""

from pathlib import Path

import pytest
import torch

from engine.config import EngineConfig
from tests.engine.local_runner import load_alone
from tests.engine.parity import Case, all_logits, random_prompts, write_case

CASES = {
    "any expert of any group, queries through a narrow middle": Case(
        "deepseek_v2", changes={"topk_method": "greedy", "q_lora_rank": 24}
    ),
    "latent attention without rotary scaling": Case(
        "deepseek_v3",
        changes={"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0}},
    ),
    "sigmoid scores as they are, queries in one step": Case(
        "deepseek_v3", changes={"norm_topk_prob": False, "q_lora_rank": None}
    ),
    "every layer has experts, one group": Case(
        "deepseek_v3", changes={"first_k_dense_replace": 0, "n_group": 1, "topk_group": 1}
    ),
    "softmax scores as they are": Case("qwen3_moe", changes={"norm_topk_prob": False}),
    "one expert a token": Case("mixtral", changes={"num_experts_per_tok": 1}),
}


@pytest.mark.hazard("expert-weights")
@pytest.mark.parametrize("name", CASES)
def test_logits_are_transformers(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    reference = write_case(tmp_path, case)
    prompts = random_prompts([1, 23, 90, 200], seed=1)
    config = EngineConfig(max_model_len=case.limit, kv_cache_tokens=512)
    found = all_logits(load_alone(tmp_path, config), prompts)
    for logits, expected in zip(found, reference.logits(prompts), strict=True):
        torch.testing.assert_close(logits, expected, rtol=0, atol=2e-4)


def test_latents_attended_part_by_part_give_the_same_logits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at lengths where neither scores nor masks of all keys may exist at once."""
    case = Case("deepseek_v3")
    reference = write_case(tmp_path, case)
    decoder = load_alone(tmp_path, EngineConfig(max_model_len=case.limit, kv_cache_tokens=512))
    monkeypatch.setattr("engine.runner.batch.MASKED_AT_ONCE", 0)
    monkeypatch.setattr("engine.layers.attend.NUMBERS_AT_ONCE", 1)
    prompts = random_prompts([1, 90, 200], seed=2)
    found = all_logits(decoder, prompts)
    for logits, expected in zip(found, reference.logits(prompts), strict=True):
        torch.testing.assert_close(logits, expected, rtol=0, atol=2e-4)
