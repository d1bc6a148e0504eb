"""Whatever arrives, leaves or runs out: every request is answered once and nothing leaks."""

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import EngineConfig, ParallelPlan
from engine.core.prefix import namespace
from engine.core.request import Event, Request
from engine.core.scheduler import Scheduler
from engine.protocol.steps import Result, Sampling
from tests.engine.mirror import RankMirror, answer

TENANTS = [namespace("m", "1", "a"), namespace("m", "1", "b")]
SHARED = list(range(40))


@st.composite
def requests(draw: st.DrawFn) -> list[Request]:
    made = []
    for index in range(draw(st.integers(1, 9))):
        head = SHARED[: draw(st.sampled_from([0, 16, 31, 32, 40]))]
        tail = draw(st.lists(st.integers(0, 96), min_size=0 if head else 1, max_size=20))
        made.append(
            Request(
                id=f"r{index}",
                prompt=head + tail,
                max_tokens=draw(st.integers(1, 30)),
                sampling=Sampling(seed=draw(st.integers(0, 2))),
                namespace=draw(st.sampled_from(TENANTS)),
            )
        )
    return made


configs = st.builds(
    lambda pp, rows, spare, blocks: EngineConfig(
        plan=ParallelPlan(pp=pp),
        max_batch_size=rows,
        token_budget=rows + spare,
        kv_cache_tokens=blocks * 16,
    ),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(0, 40),
    st.integers(6, 16),
)


class World:
    """A scheduler, one mirror, and the steps between them."""

    def __init__(self, config: EngineConfig) -> None:
        self.scheduler = Scheduler(config, 96)
        self.mirror = RankMirror(token_budget=config.token_budget)
        self.results: deque[Result] = deque()
        self.events: list[Event] = []
        self.most_in_flight = 0

    def send(self) -> bool:
        step = self.scheduler.schedule(now=0.0)
        if step is None:
            return False
        assert len(step.rows) <= self.scheduler.config.max_batch_size
        self.results.append(self.mirror.run(step))
        self.most_in_flight = max(self.most_in_flight, len(self.results))
        return True

    def receive(self) -> None:
        self.events += self.scheduler.apply(self.results.popleft(), now=0.0)
        self.scheduler.audit()

    def drain(self) -> None:
        for _ in range(5000):
            while self.send():
                pass
            if not self.results:
                return
            self.receive()
        raise AssertionError("the scheduler does not come to an end")

    def assert_at_rest(self) -> None:
        self.scheduler.audit()
        assert (self.scheduler.running, self.scheduler.waiting) == (0, 0)
        assert self.scheduler.pool.used == 0
        assert self.scheduler.pool.available == self.scheduler.pool.size


@settings(max_examples=200, deadline=None)
@given(config=configs, wanted=requests())
def test_every_request_gets_the_undisturbed_answer(
    config: EngineConfig, wanted: list[Request]
) -> None:
    world = World(config)
    for request in wanted:
        world.scheduler.add(request)
    world.drain()
    world.assert_at_rest()
    for request in wanted:
        assert request.emitted == answer(request.prompt, request.max_tokens, request.sampling)
        endings = [e for e in world.events if e.request is request and e.finish is not None]
        assert [e.finish for e in endings] == ["length"]
    assert world.most_in_flight <= config.plan.pp


@settings(max_examples=200, deadline=None)
@given(config=configs, wanted=requests(), data=st.data())
def test_ending_requests_at_any_moment_frees_their_blocks(
    config: EngineConfig, wanted: list[Request], data: st.DataObject
) -> None:
    world = World(config)
    arriving = deque(wanted)
    actions = st.sampled_from(["add", "send", "receive", "abort"])
    for _ in range(data.draw(st.integers(0, 40))):
        match data.draw(actions):
            case "add" if arriving:
                world.scheduler.add(arriving.popleft())
            case "send":
                world.send()
            case "receive" if world.results:
                world.receive()
            case "abort":
                event = world.scheduler.end(data.draw(st.sampled_from(wanted)).id, "abort")
                world.events += [event] if event else []
                world.scheduler.audit()
    while arriving:
        world.scheduler.add(arriving.popleft())
    world.drain()
    world.assert_at_rest()
    for request in wanted:
        endings = [e for e in world.events if e.request is request and e.finish is not None]
        assert len(endings) == 1, "exactly one terminal event"
        tokens = [e.token for e in world.events if e.request is request and e.token is not None]
        assert tokens == request.emitted
        whole = answer(request.prompt, request.max_tokens, request.sampling)
        assert request.emitted == whole[: len(request.emitted)]


@settings(max_examples=60, deadline=None)
@given(config=configs, wanted=requests())
def test_a_request_with_bad_numbers_fails_alone(
    config: EngineConfig, wanted: list[Request]
) -> None:
    world = World(config)
    world.mirror.poisoned = {0}
    for request in wanted:
        world.scheduler.add(request)
    world.drain()
    world.assert_at_rest()
    assert [r.finish for r in wanted].count("error") == 1
    for request in wanted:
        if request.finish != "error":
            assert request.emitted == answer(request.prompt, request.max_tokens, request.sampling)
