"""Two real ranks that share experts or latent attention answer as transformers does."""

from pathlib import Path

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


@pytest.mark.parametrize("architecture", ["mixtral", "deepseek_v3"])
def test_two_ranks_answer_as_transformers_does(architecture: str, tmp_path: Path) -> None:
    model = write_hf_model(tmp_path / "model", architecture, moe_intermediate_size=64)
    expected = [continued(model, prompt) for prompt in PROMPTS]
    config = EngineConfig(plan=ParallelPlan(tp=2), kv_cache_tokens=512, token_budget=32)
    with RankFleet(tmp_path / "model", config, tmp_path) as fleet:
        assert fleet.generate(PROMPTS, TOKENS) == expected
