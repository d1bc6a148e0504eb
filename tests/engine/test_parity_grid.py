"""Every architecture computes what transformers computes, on every road through the engine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.config import BLOCK_SIZE, EngineConfig, ParallelPlan
from engine.parallel import Alone, Mesh
from engine.parallel.group import Group
from tests.engine.local_runner import load_alone, load_rank
from tests.engine.parity import (
    CASES,
    Case,
    Engine,
    Reference,
    all_logits,
    random_prompts,
    write_case,
)
from tests.engine.thread_ranks import on_every_rank

COUNT = 64
BATCH = 17
CANDIDATES = 30
MARGIN = 1e-3
"""A prompt whose answer has a closer second choice somewhere is not asked: rounding decides it."""

PROMPTS = random_prompts([1, 2, 16, 23, 24, 25, 90, 200], seed=1)


@dataclass(frozen=True)
class Pair:
    case: Case
    folder: Path
    reference: Reference
    prompts: list[list[int]]
    answers: list[list[int]]

    def config(self, **settings: Any) -> EngineConfig:
        return EngineConfig(max_model_len=self.case.limit, kv_cache_tokens=8192, **settings)

    def engine(self, budget: int, rows: int = BATCH) -> Engine:
        return Engine(self.folder, self.config(token_budget=budget, max_batch_size=rows))


@pytest.fixture(scope="module", params=CASES, ids=str)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A model with prompts and the answers that transformers gives to them."""
    torch.set_num_threads(1)
    case: Case = request.param
    folder = tmp_path_factory.mktemp(case.name)
    reference = write_case(folder, case)
    candidates = random_prompts([5 + 37 * index % 101 for index in range(CANDIDATES)], case.seed)
    answers, margins = reference.greedy(candidates, COUNT)
    decided = [index for index, margin in enumerate(margins) if margin > MARGIN][:BATCH]
    assert len(decided) == BATCH, "another seed is needed"
    prompts = [candidates[index] for index in decided]
    return Pair(case, folder, reference, prompts, [answers[index] for index in decided])


@pytest.mark.hazard("rope-unknown")
def test_logits_are_transformers_whatever_the_lengths_in_a_batch(pair: Pair) -> None:
    found = all_logits(load_alone(pair.folder, pair.config()), PROMPTS)
    check_logits(pair, found)


@pytest.mark.hazard("tied-embeddings")
@pytest.mark.hazard("tp-beyond-heads")
@pytest.mark.parametrize("plan", ["tp=2,pp=1", "tp=1,pp=2"])
def test_two_ranks_give_transformers_logits(pair: Pair, plan: str) -> None:
    config = pair.config(plan=ParallelPlan.parse(plan))

    def work(group: Group) -> list[Tensor]:
        tp, pipeline = (group, Alone()) if config.plan.tp == 2 else (Alone(), group)
        mesh = Mesh(tp, pipeline, "queue")
        return all_logits(load_rank(pair.folder, config, group.rank, mesh), PROMPTS)

    check_logits(pair, [logits for found in on_every_rank(2, work) for logits in found])


def check_logits(pair: Pair, found: list[Tensor]) -> None:
    for logits, expected in zip(found, pair.reference.logits(PROMPTS), strict=True):
        torch.testing.assert_close(logits, expected, rtol=0, atol=2e-4)


@pytest.mark.hazard("window-and-cache")
@pytest.mark.hazard("cache-hit-numerics")
def test_seventeen_answers_in_chunks_are_transformers_the_first_and_the_fourth_time(
    pair: Pair,
) -> None:
    engine = pair.engine(budget=48)
    for count in (COUNT, 1, 1, COUNT):
        requests = engine.greedy(pair.prompts, count)
        assert [request.emitted for request in requests] == [a[:count] for a in pair.answers]
    assert all(bool(r.cached_tokens) == (len(r.prompt) > BLOCK_SIZE) for r in requests)


def test_an_answer_alone_and_unchunked_is_the_same(pair: Pair) -> None:
    longest = max(range(BATCH), key=lambda index: len(pair.prompts[index]))
    [request] = pair.engine(budget=256, rows=1).greedy([pair.prompts[longest]], COUNT)
    assert request.emitted == pair.answers[longest]
