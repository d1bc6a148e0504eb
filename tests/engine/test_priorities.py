"""A lower priority number goes first; waiting makes up for a higher one."""

from typing import Any

import pytest

from engine.config import EngineConfig
from engine.core.queue import AGEING_SECONDS
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from tests.engine.mirror import RankMirror, answer


class Served:
    """A scheduler and its ranks, a second a step."""

    def __init__(self, blocks: int = 64, **settings: Any) -> None:
        self.scheduler = Scheduler(EngineConfig(kv_cache_tokens=blocks * 16, **settings), 1024)
        self.mirror = RankMirror()
        self.now = 0.0

    def ask(self, name: str, priority: int, prompt: int = 4, answer: int = 4) -> Request:
        first = 100 * self.scheduler.waiting + 7 * self.scheduler.running
        request = Request(
            id=name,
            prompt=[first + i for i in range(prompt)],
            max_tokens=answer,
            priority=priority,
            arrived_at=self.now,
        )
        self.scheduler.add(request)
        return request

    def step(self) -> None:
        self.now += 1.0
        step = self.scheduler.schedule(self.now)
        assert step is not None
        self.scheduler.apply(self.mirror.run(step), self.now)


@pytest.mark.hazard("priority-order")
def test_the_lower_number_starts_first_whoever_came_first() -> None:
    served = Served(max_batch_size=1)
    served.ask("now", 0, answer=1)
    names = {"a": 3, "b": 0, "c": -5, "d": 2, "e": 0}
    requests = [served.ask(name, priority) for name, priority in names.items()]
    while served.scheduler.running or served.scheduler.waiting:
        served.step()
    order = sorted(requests, key=lambda request: request.admitted_at or 0.0)
    assert [request.id for request in order] == ["c", "b", "e", "d", "a"]


@pytest.mark.hazard("priority-order")
def test_a_low_priority_is_served_though_better_ones_never_stop_coming() -> None:
    served = Served(max_batch_size=1)
    low = served.ask("low", 2)
    for index in range(200):
        served.ask(f"high{index}", 0, answer=1)
        served.step()
        if low.finish:
            break
    assert low.finish == "length"
    assert low.admitted_at is not None
    assert 2 * AGEING_SECONDS <= low.admitted_at <= 2 * AGEING_SECONDS + 10


@pytest.mark.hazard("priority-order")
def test_a_running_request_never_loses_its_blocks_to_a_lower_priority() -> None:
    served = Served(blocks=8, max_batch_size=4, token_budget=64)
    low = served.ask("low", 5, prompt=14, answer=60)
    high = [served.ask(f"high{index}", 0, prompt=14, answer=60) for index in range(2)]
    while served.scheduler.running or served.scheduler.waiting:
        served.step()
        served.scheduler.audit()
    assert low.preemptions > 0
    assert high[0].preemptions == 0
    for request in (low, *high):
        assert request.emitted == answer(request.prompt, 60)


@pytest.mark.hazard("priority-order")
def test_a_prompt_of_a_better_priority_is_read_before_a_worse_one_goes_on() -> None:
    served = Served(blocks=128, max_batch_size=4, token_budget=64)
    low = served.ask("low", 1, prompt=900, answer=1)
    served.step()
    high = served.ask("high", 0, prompt=300, answer=1)
    while not high.finish:
        served.step()
    assert served.now == 6.0, "300 tokens at 64 a step"
    assert not low.finish


@pytest.mark.hazard("priority-order")
def test_blocks_given_up_give_back_their_share_of_the_step() -> None:
    """Two sequences need a block and none is free: the worse one loses its own, and its row."""
    served = Served(blocks=4, max_batch_size=2, token_budget=32)
    worse = served.ask("worse", 1, prompt=14, answer=40)
    better = served.ask("better", 0, prompt=14, answer=40)
    while not better.finish:
        served.step()
        served.scheduler.audit()
    assert (better.preemptions, worse.preemptions > 0) == (0, True)
    while not worse.finish:
        served.step()
    assert worse.emitted == answer(worse.prompt, 40)
    assert served.scheduler.pool.used == 0
