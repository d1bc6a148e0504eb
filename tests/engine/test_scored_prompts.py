"""The probabilities of a prompt's own tokens, however the prompt is cut, cached or recomputed."""

import msgspec
import pytest

from engine.config import EngineConfig
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.errors import ProtocolError
from engine.protocol.steps import Sampling, Step
from tests.engine.mirror import RankMirror

PROMPT = list(range(100, 170))
SCORED = Sampling(logprobs=3)


def ask(name: str = "r", answer: int = 3, prompt: list[int] = PROMPT) -> Request:
    return Request(
        id=name,
        prompt=prompt,
        max_tokens=answer,
        sampling=SCORED,
        share_prefix=False,
        score_prompt=True,
    )


def advance(scheduler: Scheduler, mirror: RankMirror) -> Step:
    step = scheduler.schedule(0.0)
    assert step is not None
    scheduler.apply(mirror.run(step), 0.0)
    return step


def serve(scheduler: Scheduler, mirror: RankMirror) -> list[Step]:
    steps: list[Step] = []
    while (step := scheduler.schedule(0.0)) is not None:
        scheduler.apply(mirror.run(step), 0.0)
        steps.append(step)
    return steps


def test_every_token_but_the_first_is_scored_once_with_the_likeliest_beside_it() -> None:
    scheduler, mirror = Scheduler(EngineConfig(token_budget=32), 512), RankMirror()
    request = ask()
    scheduler.add(request)
    steps = serve(scheduler, mirror)
    assert [report.token for report in request.prompt_logprobs] == PROMPT[1:]
    assert all(len(report.top) == 3 for report in request.prompt_logprobs)
    assert [len(row.targets) for step in steps for row in step.rows][:4] == [32, 32, 5, 0]


def test_a_cached_prompt_is_computed_again_to_be_scored() -> None:
    scheduler, mirror = Scheduler(EngineConfig(), 512), RankMirror()
    for name in ("first", "second"):
        request = ask(name)
        scheduler.add(request)
        serve(scheduler, mirror)
        assert [report.token for report in request.prompt_logprobs] == PROMPT[1:]
        assert request.cached_tokens == 0


def test_a_prompt_that_loses_its_blocks_halfway_is_scored_once() -> None:
    """Part of it is scored when a better request needs the blocks."""
    config = EngineConfig(kv_cache_tokens=6 * 16, max_batch_size=2, token_budget=3)
    scheduler, mirror = Scheduler(config, 512), RankMirror()
    better = Request(id="better", prompt=[1] * 12, max_tokens=30, priority=-1)
    scheduler.add(better)
    for _ in range(3):
        advance(scheduler, mirror)
    scored = ask(answer=2, prompt=PROMPT[:60])
    scheduler.add(scored)
    while not scored.preemptions:
        advance(scheduler, mirror)
    known = len(scored.prompt_logprobs)
    assert 32 < known < 48, "halfway through a block"
    steps = serve(scheduler, mirror)
    assert [report.token for report in scored.prompt_logprobs] == PROMPT[1:60]
    targets = sum(len(row.targets) for step in steps for row in step.rows)
    assert 59 - known < targets < 59, "the cached part was not computed again, one row overlapped"
    assert better.preemptions == 0


def test_a_prompt_may_be_scored_without_an_answer() -> None:
    scheduler, mirror = Scheduler(EngineConfig(token_budget=32), 512), RankMirror()
    request = ask(answer=0)
    scheduler.add(request)
    steps = serve(scheduler, mirror)
    assert not any(row.sample for step in steps for row in step.rows)
    assert (request.finish, request.emitted) == ("length", [])
    assert [report.token for report in request.prompt_logprobs] == PROMPT[1:]
    assert scheduler.pool.used == 0


def test_scores_that_are_missing_are_noticed() -> None:
    scheduler, mirror = Scheduler(EngineConfig(), 512), RankMirror()
    scheduler.add(ask())
    step = scheduler.schedule(0.0)
    assert step is not None
    result = msgspec.structs.replace(mirror.run(step), scores={})
    with pytest.raises(ProtocolError, match="scores"):
        scheduler.apply(result, 0.0)
