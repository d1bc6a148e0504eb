"""Two real ranks of a model with norms on queries and keys answer as transformers does."""

from pathlib import Path

import pytest

from engine.config import EngineConfig, ParallelPlan
from tests.engine.parity import Case, random_prompts, write_case
from tests.engine.rank_fleet import RankFleet

COUNT = 24


@pytest.mark.hazard("tp-beyond-heads")
@pytest.mark.parametrize("name", ["qwen3", "gemma3"])
def test_two_ranks_answer_as_transformers_does(name: str, tmp_path: Path) -> None:
    reference = write_case(tmp_path / "model", Case(name))
    prompts = random_prompts([3, 30, 61])
    answers, margins = reference.greedy(prompts, COUNT)
    assert min(margins) > 1e-3, "another seed is needed"
    config = EngineConfig(plan=ParallelPlan(tp=2), kv_cache_tokens=1024, token_budget=40)
    with RankFleet(tmp_path / "model", config, tmp_path) as fleet:
        assert fleet.generate(prompts, COUNT) == answers
