"""A step is on its way while the one before it runs: it computes tokens that nobody knows yet."""

from typing import Any

import pytest

from engine.config import EngineConfig, ParallelPlan
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.protocol.steps import PENDING, Sampling, Step
from tests.engine.mirror import RankMirror, answer
from tests.engine.scheduler_world import SchedulerWorld


def ask(index: int, prompt: int = 3, max_tokens: int = 6, **settings: Any) -> Request:
    return Request(
        id=f"r{index}",
        prompt=[index + i for i in range(prompt)],
        max_tokens=max_tokens,
        sampling=Sampling(seed=index),
        **settings,
    )


def world(*wanted: Request, blocks: int = 64, **settings: Any) -> SchedulerWorld:
    made = SchedulerWorld(EngineConfig(kv_cache_tokens=16 * blocks, **settings))
    for request in wanted:
        made.add(request)
    return made


def rows(step: Step | None) -> list[list[int]]:
    assert step is not None
    return [row.tokens for row in step.rows]


def test_the_next_step_follows_before_the_first_result_and_no_third_does() -> None:
    served = world(ask(1), ask(2))
    assert rows(served.send()) == [[1, 2, 3], [2, 3, 4]]
    assert rows(served.send()) == [[PENDING], [PENDING]]
    assert served.send() is None
    served.drain()


def test_an_answer_whose_length_is_known_wastes_no_row() -> None:
    served = world(ask(1, max_tokens=1), ask(2, max_tokens=2), ask(3, max_tokens=5))
    sizes = []
    while (step := served.send()) or served.flights:
        sizes += [len(step.rows)] if step else []
        if served.scheduler.in_flight == 2 or not step:
            served.receive()
    assert sizes == [3, 2, 1, 1, 1]
    served.check_rest()


def test_a_row_sent_for_an_answer_that_has_ended_is_dropped() -> None:
    """A stop token is drawn while the next step is on its way."""
    stops = frozenset(answer([1, 2, 3], 3, Sampling(seed=1))[2:])
    served = world(ask(1, max_tokens=20, stop_tokens=stops), ask(2, max_tokens=20))
    while not served.asked[0].finish:
        while served.send():
            pass
        served.receive()
    assert served.scheduler.in_flight == 1
    assert len(served.flights[0][0].rows) == 2, "its row is on its way all the same"
    assert served.asked[0].emitted == answer([1, 2, 3], 3, Sampling(seed=1))
    assert served.scheduler.pool.used == 1
    served.drain()


@pytest.mark.hazard("disconnect")
def test_blocks_of_a_row_on_its_way_may_go_to_another_at_once() -> None:
    served = world(ask(1, prompt=30, max_tokens=34), blocks=4)
    served.send()
    served.send()
    served.end(served.asked[0])
    served.add(ask(2, prompt=60, max_tokens=4))
    while served.flights:
        served.receive()
    step = served.send()
    assert step is not None
    assert step.released == [0]
    served.drain()


def test_the_block_of_a_token_not_known_yet_costs_nobody_theirs() -> None:
    """Two sequences fill their blocks at once and one is free: the other waits for its token."""
    served = world(ask(1, prompt=15, max_tokens=12), ask(2, prompt=15, max_tokens=12), blocks=3)
    assert [len(rows(served.send())) for _ in range(2)] == [2, 2]
    served.receive()
    assert rows(served.send()) == [[PENDING]]
    served.receive()
    assert served.scheduler.counters.preemptions == 0
    assert rows(served.send()) == [[PENDING]]
    assert served.scheduler.counters.preemptions == 1, "now it is known, and the newest gives way"
    served.drain()


def test_a_long_prompt_is_sent_on_before_its_first_part_is_read() -> None:
    served = world(ask(1, prompt=40), token_budget=16, max_batch_size=4)
    assert [len(tokens) for tokens in rows(served.send())] == [16]
    assert [len(tokens) for tokens in rows(served.send())] == [16]
    served.drain()


@pytest.mark.parametrize("most", [1, 3, 8])
def test_where_not_all_can_advance_they_take_turns(most: int) -> None:
    scheduler = Scheduler(EngineConfig(max_batch_size=8), 512)
    mirror = RankMirror()
    requests = [ask(index, max_tokens=30) for index in range(8)]
    scheduler.add_all(requests)
    results, lag = [], 0
    while scheduler.running or scheduler.waiting:
        while (step := scheduler.schedule(0.0)) is not None:
            results.append(mirror.run(step))
        scheduler.apply(results.pop(0), 0.0)
        scheduler.cap.hold(most)
        lengths = [len(request.emitted) for request in requests if not request.finish]
        lag = max(lag, max(lengths, default=0) - min(lengths, default=0))
    assert lag <= 1
    assert all(r.emitted == answer(r.prompt, 30, r.sampling) for r in requests)


@pytest.mark.parametrize(("stages", "cap"), [(1, 8), (2, 1)])
def test_a_step_is_timed_from_when_it_could_begin(stages: int, cap: int) -> None:
    """Results come every 60 ms: so long takes a token here, and in a pipeline of two twice that."""
    config = EngineConfig(plan=ParallelPlan(pp=stages), max_batch_size=8, target_itl=0.1)
    scheduler, mirror = Scheduler(config, 1024), RankMirror()
    scheduler.add_all([ask(index, max_tokens=400) for index in range(8)])
    now, results = 0.0, []
    for _ in range(300):
        while (step := scheduler.schedule(now)) is not None:
            results.append(mirror.run(step))
        now += 0.06
        scheduler.apply(results.pop(0), now)
    assert scheduler.cap.rows == cap
