"""The order in which requests get their turn."""

from typing import Any

import pytest

from engine.config import EngineConfig, ParallelPlan
from engine.core.picker import MAX_PASSED
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.errors import ProtocolError, RequestError
from engine.protocol.steps import Result, Timings
from tests.engine.mirror import RankMirror, answer

NO_TIME = Timings(0.0, 0.0, 0.0)


def make(blocks: int = 64, **settings: Any) -> Scheduler:
    return Scheduler(EngineConfig(kv_cache_tokens=blocks * 16, **settings), 1024)


def ask(name: str, prompt: int, answer: int = 4, first: int = 0) -> Request:
    return Request(id=name, prompt=[first + i for i in range(prompt)], max_tokens=answer)


def test_decode_rows_come_before_prefill_and_the_budget_holds() -> None:
    scheduler = make(max_batch_size=4, token_budget=8)
    mirror = RankMirror()
    scheduler.add(ask("short", 3))
    step = scheduler.schedule(0.0)
    assert step is not None
    scheduler.apply(mirror.run(step), 0.0)
    scheduler.add(ask("long", 30, first=50))
    step = scheduler.schedule(0.0)
    assert step is not None
    assert [(len(row.tokens), row.sample) for row in step.rows] == [(1, True), (7, False)]


def test_a_short_prompt_does_not_wait_for_a_long_one_to_be_read() -> None:
    scheduler = make(blocks=128, max_batch_size=4, token_budget=64)
    mirror = RankMirror()
    long = ask("long", 900, answer=1)
    scheduler.add(long)
    sizes: list[int] = []
    shorts = [ask(f"short{i}", 40, answer=1, first=2000 + 100 * i) for i in range(3)]
    while not long.finish:
        if len(sizes) in (2, 4, 6):
            scheduler.add(shorts[len(sizes) // 2 - 1])
        step = scheduler.schedule(0.0)
        assert step is not None
        scheduler.apply(mirror.run(step), 0.0)
        sizes.append(sum(len(row.tokens) for row in step.rows))
        if len(sizes) in (4, 6, 8):
            assert shorts[len(sizes) // 2 - 2].finish
    assert set(sizes[:-1]) == {64}, "no budget was wasted"


@pytest.mark.hazard("blocked-head")
def test_small_requests_pass_one_that_lacks_memory_but_not_for_ever() -> None:
    scheduler = make(blocks=12, max_batch_size=2, token_budget=256)
    mirror = RankMirror()
    scheduler.add(ask("holder", 16, answer=150))
    step = scheduler.schedule(0.0)
    assert step is not None
    scheduler.apply(mirror.run(step), 0.0)
    big = ask("big", 170, first=300)
    scheduler.add(big)
    small = [ask(f"small{i}", 2, answer=1, first=1000 + 10 * i) for i in range(MAX_PASSED + 10)]
    for request in small:
        scheduler.add(request)
    finished_before_big = 0
    for _ in range(400):
        step = scheduler.schedule(0.0)
        assert step is not None
        scheduler.apply(mirror.run(step), 0.0)
        if big.emitted:
            break
        finished_before_big = sum(r.finish is not None for r in small)
    assert big.emitted
    assert finished_before_big == MAX_PASSED


def test_a_pipeline_keeps_a_disjoint_step_for_each_stage() -> None:
    scheduler = make(plan=ParallelPlan(pp=2), max_batch_size=8, token_budget=256)
    mirror = RankMirror()
    for index in range(6):
        scheduler.add(ask(f"r{index}", 3, first=10 * index))
    step = scheduler.schedule(0.0)
    assert step is not None
    scheduler.apply(mirror.run(step), 0.0)
    first, second = scheduler.schedule(0.0), scheduler.schedule(0.0)
    assert first is not None
    assert second is not None
    assert scheduler.schedule(0.0) is None
    assert [len(first.rows), len(second.rows)] == [3, 3]
    assert not {row.seq for row in first.rows} & {row.seq for row in second.rows}


def test_a_request_that_could_never_fit_is_refused_at_once() -> None:
    scheduler = make(blocks=4)
    with pytest.raises(RequestError, match="64") as refusal:
        scheduler.add(ask("huge", 60, answer=5))
    assert refusal.value.code == "context_length_exceeded"


def test_a_full_queue_refuses_with_503() -> None:
    scheduler = make(max_waiting=1)
    scheduler.add(ask("one", 3))
    with pytest.raises(RequestError) as refusal:
        scheduler.add(ask("two", 3))
    assert refusal.value.status == 503


def test_a_result_out_of_order_is_refused() -> None:
    scheduler = make()
    scheduler.add(ask("one", 3))
    scheduler.schedule(0.0)
    with pytest.raises(ProtocolError, match="step 7"):
        scheduler.apply(Result(n=7, tokens=[1], failed=[], timings=NO_TIME), 0.0)


def test_stop_tokens_wait_for_min_tokens() -> None:
    scheduler = make()
    request = Request(id="r", prompt=[1, 2], max_tokens=9, stop_tokens=frozenset({5}), min_tokens=2)
    scheduler.add(request)
    mirror = RankMirror(next_token=lambda history, sampling: 5)
    while (step := scheduler.schedule(0.0)) is not None:
        scheduler.apply(mirror.run(step), 0.0)
    assert (request.emitted, request.finish) == ([5, 5, 5], "stop")


@pytest.mark.hazard("preemption-tokens")
def test_the_newest_gives_up_its_blocks_and_still_answers_the_same() -> None:
    scheduler = make(blocks=8, max_batch_size=4, token_budget=64)
    mirror = RankMirror()
    wanted = [ask(f"r{i}", 14, answer=60, first=20 * i) for i in range(3)]
    for request in wanted:
        scheduler.add(request)
    while (step := scheduler.schedule(0.0)) is not None:
        scheduler.apply(mirror.run(step), 0.0)
        scheduler.audit()
    assert scheduler.counters.preemptions > 0
    assert wanted[0].preemptions == 0, "the oldest is never robbed"
    for request in wanted:
        assert request.emitted == answer(request.prompt, 60)
        assert request.finish == "length"
