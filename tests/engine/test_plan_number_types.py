"""A model split over ranks is no coarser in any number type than the whole one."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.config import EngineConfig, ParallelPlan
from tests.engine.hf_models import write_hf_model
from tests.engine.local_runner import load_rank
from tests.engine.parity import all_logits, random_prompts
from tests.engine.thread_ranks import linked_meshes

SECONDS = 120.0
PROMPTS = random_prompts([40, 7, 90], seed=3)
TYPES: dict[str, dict[str, Any]] = {
    "bf16": {"dtype": "bf16"},
    "int8": {"dtype": "int8"},
    "int4": {"dtype": "int4"},
    "int8 keys and values": {"kv_dtype": "int8"},
}
PLANS = ["tp=4", "tp=2,ep=2", "ep=2,pp=2,weights=1:2:2:1"]
"""Of two KV heads, the first two plans hold each twice."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mixture")
    sizes: dict[str, Any] = {"intermediate_size": 128, "moe_intermediate_size": 128}
    write_hf_model(made, "qwen3_moe", num_experts=7, **sizes)
    return made


@pytest.mark.parametrize("kind", TYPES)
def test_logits_are_as_near_to_the_exact_ones(kind: str, folder: Path) -> None:
    exact = logits(folder, "", {})
    whole = distance(logits(folder, "", TYPES[kind]), exact)
    for plan in PLANS:
        assert distance(logits(folder, plan, TYPES[kind]), exact) < 1.2 * whole


def logits(folder: Path, plan: str, settings: dict[str, Any]) -> Tensor:
    """Of every token of every prompt."""
    config = EngineConfig(plan=ParallelPlan.parse(plan), kv_cache_tokens=512, **settings)
    meshes = linked_meshes(config.plan)

    def work(rank: int) -> list[Tensor]:
        return all_logits(load_rank(folder, config, rank, meshes[rank]), PROMPTS)

    with ThreadPoolExecutor(len(meshes)) as pool:
        found = list(pool.map(work, range(len(meshes)), timeout=SECONDS))
    return torch.cat(found[config.plan.output_rank])


def distance(found: Tensor, exact: Tensor) -> float:
    """Root of the mean square."""
    return (found - exact).square().mean().sqrt().item()
