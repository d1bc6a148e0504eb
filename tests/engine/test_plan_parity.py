"""Every plan of up to four ranks computes what one rank computes, and gives the same answers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from engine.config import EngineConfig, ParallelPlan
from engine.shards import rank_shares
from engine.tools.upcycle import upcycle
from tests.engine.bundled import bundled_checkpoint, bundled_model
from tests.engine.hf_models import write_hf_model
from tests.engine.parity import TOKENS, random_prompts
from tests.engine.plan_runner import PlanRunner

COUNTS = {"bundled": 20, "upcycled": 12, "qwen3_moe": 32, "deepseek_v3": 32}
"""Tokens of each answer: fewer where they take long."""
MOST_RANKS = 4
TOLERANCE = 1e-4
GOLDEN = Path(__file__).parent.parent / "golden" / "greedy_fp32.json"

GRID = [
    str(plan)
    for tp, pp, ep in product((1, 2, 3, 4), (1, 2), (1, 2))
    if 1 < (plan := ParallelPlan(tp=tp, pp=pp, ep=ep)).world_size <= MOST_RANKS
]
UNEVEN = ["tp=3,weights=1:3:2", "tp=4,weights=1:5:2:3"]
MIXED = ["ep=2,weights=1:3", "tp=2,ep=2,weights=4:1:2:3", "ep=2,pp=2,weights=1:2:4:3"]
BUNDLED = [plan for plan in GRID if "ep" not in plan]
"""Without experts the others come to the same, which a test of its own holds."""

TINY: dict[str, dict[str, Any]] = {
    "qwen3_moe": {"num_experts": 7, "intermediate_size": 128, "moe_intermediate_size": 128},
    "deepseek_v3": {"intermediate_size": 128, "moe_intermediate_size": 128},
}
CASES = [
    *[pytest.param("bundled", plan, marks=pytest.mark.model) for plan in [*BUNDLED, UNEVEN[1]]],
    *[pytest.param("upcycled", plan, marks=pytest.mark.model) for plan in GRID],
    *product(TINY, [*GRID, *UNEVEN, *MIXED]),
]


@dataclass(frozen=True)
class Model:
    """One model, and what a single rank makes of it."""

    path: Path
    prompts: list[list[int]]
    answers: list[list[int]]
    logits: list[Tensor]
    expert_tokens: tuple[int, ...]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Model]:
    """By name, each made once."""

    @cache
    def make(name: str) -> Model:
        path, prompts = write(name, tmp_path_factory.mktemp(name))
        with PlanRunner(path, config(ParallelPlan())) as alone:
            answers = alone.generate(prompts, COUNTS[name])
        [decoder] = alone.decoders
        return Model(path, prompts, answers, alone.logits, decoder.expert_tokens())

    return make


def write(name: str, folder: Path) -> tuple[Path, list[list[int]]]:
    """The model and prompts for it."""
    if name in TINY:
        write_hf_model(folder, name, **TINY[name])
        return folder, random_prompts([5, 61, 30, 1])
    prompts = [entry["ids"] for entry in json.loads(GOLDEN.read_text())[:3]]
    if name == "bundled":
        return bundled_model(), prompts
    upcycle(bundled_model(), folder / "mixture.gguf", experts=2, per_token=1)
    return folder / "mixture.gguf", prompts


def config(plan: ParallelPlan) -> EngineConfig:
    """Prompts come in chunks, beside answers that are being written."""
    return EngineConfig(plan=plan, kv_cache_tokens=1024, token_budget=48)


@pytest.mark.hazard("tp-beyond-heads")
@pytest.mark.hazard("tied-embeddings")
@pytest.mark.hazard("padded-vocabulary")
@pytest.mark.parametrize(("name", "plan"), CASES)
def test_a_plan_gives_the_logits_and_the_answers_of_one_rank(
    name: str, plan: str, models: Callable[[str], Model]
) -> None:
    model = models(name)
    with PlanRunner(model.path, config(ParallelPlan.parse(plan))) as runner:
        answers = runner.generate(model.prompts, COUNTS[name])
    assert answers == model.answers
    worst = max(differences(runner.logits, model.logits))
    print(f"{name}, {plan}: logits differ by {worst:.1e} at most")
    assert worst <= TOLERANCE
    assert expert_tokens(runner) == model.expert_tokens


def differences(found: list[Tensor], expected: list[Tensor]) -> Iterator[float]:
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == theirs.shape
        yield (mine - theirs).abs().max().item()


def expert_tokens(runner: PlanRunner) -> tuple[int, ...]:
    """Summed over the stages; every rank of a stage counts the same."""
    width = runner.config.plan.width
    counts = [decoder.expert_tokens() for decoder in runner.decoders]
    for first in range(0, len(counts), width):
        assert len(set(counts[first : first + width])) == 1
    return tuple(map(sum, zip(*filter(None, counts[::width]), strict=True)))


@pytest.mark.parametrize("name", TINY)
def test_the_models_here_want_ids_that_no_tokenizer_knows(
    name: str, models: Callable[[str], Model]
) -> None:
    """Or it would prove nothing that none was drawn."""
    model = models(name)
    assert any(int(row.argmax()) >= TOKENS for step in model.logits for row in step)
    assert all(token < TOKENS for answer in model.answers for token in answer)


@pytest.mark.parametrize("plan", [plan for plan in GRID if "ep" in plan])
def test_expert_groups_of_a_model_without_experts_are_more_ranks(plan: str) -> None:
    grouped = ParallelPlan.parse(plan)
    wide = ParallelPlan(tp=grouped.width, pp=grouped.pp)
    shape = bundled_checkpoint().config
    assert rank_shares(shape, grouped) == rank_shares(shape, wide)
    assert str(wide) in BUNDLED
