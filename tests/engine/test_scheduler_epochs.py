"""Ranks may be lost at any moment: every answer goes on where it was, with the memory left."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import EngineConfig
from engine.core.request import Request
from engine.protocol.steps import Sampling
from tests.engine.scheduler_world import SchedulerWorld
from tests.engine.test_scheduler_properties import configs, requests


def ask(index: int, max_tokens: int = 20) -> Request:
    return Request(
        id=f"r{index}",
        prompt=[index, 5, 7],
        max_tokens=max_tokens,
        sampling=Sampling(seed=index),
    )


def world(*wanted: Request, blocks: int = 16) -> SchedulerWorld:
    made = SchedulerWorld(EngineConfig(kv_cache_tokens=16 * blocks))
    for request in wanted:
        made.add(request)
    return made


def work(world: SchedulerWorld, steps: int) -> None:
    """So many results arrive; at the end the next step is on its way."""
    for _ in range(steps):
        while world.send():
            pass
        world.receive()
    while world.send():
        pass


@settings(max_examples=150, deadline=None)
@given(config=configs, wanted=requests(), data=st.data())
def test_epochs_that_end_at_any_moment_change_no_answer(
    config: EngineConfig, wanted: list[Request], data: st.DataObject
) -> None:
    world = SchedulerWorld(config)
    arriving = deque(wanted)
    moves = st.sampled_from(["add", "send", "send", "send", "receive", "receive", "abort", "fault"])
    for move in data.draw(st.lists(moves, max_size=60)):
        world.now += 0.01
        match move:
            case "add" if arriving:
                world.add(arriving.popleft())
            case "send":
                world.send()
            case "receive" if world.flights:
                world.receive()
            case "abort":
                world.end(data.draw(st.sampled_from(wanted)))
            case "fault":
                world.fault(data.draw(st.integers(6, 16)))
    while arriving:
        world.add(arriving.popleft())
    world.drain()
    for request in wanted:
        assert request.finish in ("stop", "length", "abort")


def test_the_new_epoch_begins_with_its_own_step_0_and_keeps_the_counters() -> None:
    lost = world(ask(1))
    work(lost, 5)
    steps = lost.scheduler.counters.steps
    lost.fault(16)
    step = lost.send()
    assert step is not None
    assert (step.epoch, step.n, step.released) == (1, 0, [])
    assert step.rows[0].tokens == lost.asked[0].history
    assert lost.scheduler.counters.steps == steps + 1


def test_who_ran_goes_on_before_who_waited() -> None:
    """Each in its old place."""
    lost = SchedulerWorld(EngineConfig(max_batch_size=1, kv_cache_tokens=256))
    for index in range(3):
        lost.now += 1
        lost.add(ask(index))
    work(lost, 3)
    lost.fault(16)
    lost.send()
    assert lost.running[0] is lost.asked[0]
    lost.drain()


@pytest.mark.hazard("terminal-event")
def test_a_request_that_the_new_memory_cannot_hold_ends_with_an_error() -> None:
    large, small = ask(1, max_tokens=60), ask(2)
    lost = world(large, small)
    work(lost, 3)
    lost.fault(2)
    assert large.finish == "error"
    assert "32" in large.error
    lost.drain()
    assert small.finish == "length"


def test_a_request_that_is_there_whenever_the_engine_fails_ends() -> None:
    killer = ask(1)
    lost = world(killer)
    for _ in range(2):
        lost.send()
        lost.fault(16, limit=3)
        assert killer.finish is None
    lost.send()
    lost.fault(16, limit=3)
    assert killer.finish == "error"
    lost.drain()


def test_a_token_in_between_clears_a_request_of_the_suspicion() -> None:
    lucky = ask(1)
    lost = world(lucky)
    for _ in range(6):
        work(lost, 1)
        lost.fault(16, limit=2)
    assert len(lucky.emitted) == 6
    lost.drain()


def test_who_only_waited_is_no_suspect() -> None:
    patient = ask(2)
    lost = SchedulerWorld(EngineConfig(max_batch_size=1, kv_cache_tokens=256))
    lost.add(ask(1))
    lost.add(patient)
    for _ in range(3):
        lost.send()
        lost.fault(16, limit=3)
    assert [request.finish for request in lost.asked] == ["error", None]
    lost.drain()
