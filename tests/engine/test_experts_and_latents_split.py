"""Real ranks that share experts or latent attention answer as transformers does."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import EngineConfig, ParallelPlan
from tests.engine.hf_models import write_hf_model
from tests.engine.rank_fleet import RankFleet
from tests.engine.tiny_model import vocabulary

PROMPTS = [[5, 80, 33, 120, 7, 61, 200, 14], list(range(30, 75)), [250]]
TOKENS = 24


@torch.inference_mode()
def continued(model: torch.nn.Module, prompt: list[int]) -> list[int]:
    """Greedy over the tokens that the tokenizer knows, by the whole sequence each time."""
    ids, known = list(prompt), len(vocabulary())
    for _step in range(TOKENS):
        ids.append(int(model(torch.tensor([ids])).logits[0, -1, :known].argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize(
    ("architecture", "plan"),
    [("mixtral", "ep=2"), ("deepseek_v3", "tp=2"), ("qwen3_moe", "tp=2,ep=2,weights=3:2:1:2")],
)
def test_ranks_answer_as_transformers_does(architecture: str, plan: str, tmp_path: Path) -> None:
    """The four share two KV heads and seven experts."""
    sizes: dict[str, Any] = {"num_experts": 7} if architecture == "qwen3_moe" else {}
    sizes |= {"intermediate_size": 128, "moe_intermediate_size": 64}
    model = write_hf_model(tmp_path / "model", architecture, **sizes)
    expected = [continued(model, prompt) for prompt in PROMPTS]
    split = ParallelPlan.parse(plan)
    config = EngineConfig(plan=split, kv_cache_tokens=512, token_budget=32)
    with RankFleet(tmp_path / "model", config, tmp_path) as fleet:
        assert fleet.generate(PROMPTS, TOKENS) == expected
