"""Whatever arrives, leaves, fails or runs out: every request is answered once and nothing leaks."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import EngineConfig, ParallelPlan
from engine.core.prefix import namespace
from engine.core.request import Request
from engine.protocol.steps import Sampling
from tests.engine.scheduler_world import SchedulerWorld

TENANTS = [namespace("m", "1", "a"), namespace("m", "1", "b")]
SHARED = list(range(40))


@st.composite
def requests(draw: st.DrawFn, most: int = 9, priorities: int = 2) -> list[Request]:
    """Some ask for several answers to one prompt, some have their prompt scored."""
    made: list[Request] = []
    while len(made) < most:
        head = SHARED[: draw(st.sampled_from([0, 16, 31, 32, 40]))]
        tail = draw(st.lists(st.integers(0, 96), min_size=0 if head else 1, max_size=20))
        root = draw(st.sampled_from(TENANTS))
        scored = draw(st.booleans())
        priority = draw(st.integers(0, priorities))
        for _ in range(draw(st.integers(1, 3))):
            made.append(
                Request(
                    id=f"r{len(made)}",
                    prompt=head + tail,
                    max_tokens=draw(st.integers(0, 30)),
                    sampling=Sampling(
                        seed=len(made),
                        presence_penalty=draw(st.sampled_from([0.0, 1.0])),
                        logprobs=draw(st.sampled_from([None, 0, 2])),
                    ),
                    stop_tokens=draw(st.sampled_from([frozenset(), frozenset(range(0, 97, 5))])),
                    min_tokens=draw(st.sampled_from([0, 7])),
                    namespace=root,
                    share_prefix=not scored,
                    score_prompt=scored,
                    priority=priority,
                )
            )
        if not draw(st.booleans()):
            break
    return made


configs = st.builds(
    lambda pp, rows, spare, blocks, target: EngineConfig(
        plan=ParallelPlan(pp=pp),
        max_batch_size=rows,
        token_budget=rows + spare,
        kv_cache_tokens=blocks * 16,
        target_itl=target,
    ),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(0, 40),
    st.integers(6, 16),
    st.sampled_from([None, 0.05]),
)


@pytest.mark.hazard("terminal-event")
@pytest.mark.hazard("preemption-tokens")
@pytest.mark.hazard("preemption-seed")
@settings(max_examples=150, deadline=None)
@given(config=configs, wanted=requests(most=9))
def test_every_request_gets_the_undisturbed_answer(
    config: EngineConfig, wanted: list[Request]
) -> None:
    world = SchedulerWorld(config)
    for request in wanted:
        world.add(request)
    world.drain()
    assert {request.finish for request in wanted} <= {"stop", "length"}


@pytest.mark.hazard("disconnect")
@pytest.mark.hazard("disconnect-session")
@pytest.mark.hazard("terminal-event")
@settings(max_examples=150, deadline=None)
@given(config=configs, wanted=requests(), data=st.data())
def test_requests_that_come_leave_and_fail_at_any_moment_harm_no_other(
    config: EngineConfig, wanted: list[Request], data: st.DataObject
) -> None:
    world = SchedulerWorld(config)
    arriving = deque(wanted)
    moves = st.sampled_from(["add", "send", "send", "receive", "receive", "abort", "fail"])
    for move in data.draw(st.lists(moves, max_size=40)):
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
            case "fail":
                world.doomed.add(data.draw(st.integers(0, len(wanted) - 1)))
    while arriving:
        world.add(arriving.popleft())
    world.drain()
    for request in wanted:
        assert request.finish != "error" or request.sampling.seed in world.doomed


@pytest.mark.hazard("priority-order")
@settings(max_examples=80, deadline=None)
@given(
    rows=st.integers(1, 4),
    wanted=requests(priorities=3),
    pauses=st.lists(st.integers(0, 3), max_size=9),
)
def test_the_best_priority_starts_first_and_inside_one_who_came_first(
    rows: int, wanted: list[Request], pauses: list[int]
) -> None:
    """With memory for all; the order is that of priorities as long as nobody waits long."""
    world = SchedulerWorld(EngineConfig(max_batch_size=rows, token_budget=64, kv_cache_tokens=1024))
    waiting: list[Request] = []
    for request, pause in zip(wanted, [*pauses, *[0] * len(wanted)], strict=False):
        world.add(request)
        waiting.append(request)
        for _ in range(pause):
            waiting = step(world, waiting)
    while waiting:
        waiting = step(world, waiting)
    world.drain()


def step(world: SchedulerWorld, waiting: list[Request]) -> list[Request]:
    """One step; who still waits after it, and has to be worse than all who started in it."""
    world.now += 0.01
    world.send()
    order = {id(r): (r.priority, world.asked.index(r)) for r in waiting}
    left = [request for request in waiting if request.cached_tokens is None]
    started = [order[id(r)] for r in waiting if r.cached_tokens is not None]
    assert max(started, default=(0, 0)) <= min((order[id(r)] for r in left), default=(9, 0))
    if world.flights:
        world.receive()
    return left
