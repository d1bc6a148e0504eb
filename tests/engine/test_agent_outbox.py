"""Readings are kept until the panel has them, and the past never keeps the present waiting."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agent import outbox as outboxes
from engine.agent.clock import PanelClock
from engine.agent.outbox import Outbox
from engine.protocol.agent import Pong, Telemetry
from monitoring.metrics import CPU_UTILIZATION
from monitoring.samples import Sample, measured


def samples(value: float = 0.5) -> list[Sample]:
    return [measured(CPU_UTILIZATION, value, source="s", scope="host")]


@dataclass
class World:
    """An agent's outbox whose seconds pass when a test says so."""

    frames: int = outboxes.KEPT_FRAMES
    size: int = outboxes.KEPT_BYTES
    seconds: float = 1000.0
    clock: PanelClock = field(init=False)
    outbox: Outbox = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A new agent: nothing of the one before is left."""
        self.clock = PanelClock(lambda: self.seconds, lambda: 1e9 + self.seconds)
        self.outbox = Outbox(
            self.clock, frames=self.frames, size=self.size, steady=lambda: self.seconds
        )

    def connect(self) -> None:
        self.outbox.connected()
        local = self.clock.local()
        self.clock.hear(Pong(local, local, local))

    def second(self) -> None:
        self.seconds += 1.0
        self.outbox.add(self.clock.local(), samples())

    def sent(self) -> list[Telemetry]:
        return list(self.outbox.outgoing())


def seqs(messages: Sequence[Telemetry]) -> list[int]:
    return [message.seq for message in messages]


def test_a_reading_is_sent_once_and_kept_until_it_is_taken() -> None:
    world = World()
    world.connect()
    world.second()
    assert seqs(world.sent()) == [0]
    assert world.sent() == []
    assert len(world.outbox) == 1
    world.outbox.taken([0])
    assert len(world.outbox) == 0


def test_after_a_reconnect_the_newest_leaves_at_once_and_the_past_at_a_pace() -> None:
    world = World()
    for _ in range(100):
        world.second()
    world.connect()
    world.second()
    first = seqs(world.sent())
    assert first[0] == 100
    assert first[1:] == [0, 1, 2, 3, 4]
    world.outbox.taken(first)
    assert world.sent() == []
    for _ in range(12):
        world.second()
        told = seqs(world.sent())
        assert told[0] == max(told)
        assert len(told) <= 1 + outboxes.PER_SECOND
        world.outbox.taken(told)
    while len(world.outbox):
        world.second()
        world.outbox.taken(seqs(world.sent()))


def test_what_a_lost_connection_carried_is_sent_again_with_its_layouts_and_its_time() -> None:
    world = World()
    world.connect()
    world.second()
    (before,) = world.sent()
    world.seconds += 7.0
    world.connect()
    (again,) = world.sent()
    assert (again.seq, again.at, again.readings) == (before.seq, before.at, before.readings)
    assert again.layouts == before.layouts != []


def test_a_layout_is_told_once_a_connection() -> None:
    world = World()
    world.connect()
    told = []
    for _ in range(3):
        world.second()
        told += world.sent()
    assert [len(message.layouts) for message in told] == [1, 0, 0]


def test_what_is_not_taken_over_a_living_connection_is_sent_again_later_and_slowly() -> None:
    """The panel's database is away: what it cannot keep it does not take."""
    world = World()
    world.connect()
    sent: list[int] = []
    for _ in range(120):
        world.second()
        sent += seqs(world.sent())
    assert sent[:30] == list(range(30))
    assert len(sent) <= 120 + outboxes.WINDOW, "no storm of what cannot be kept"
    for _ in range(60):
        world.second()
        told = seqs(world.sent())
        world.outbox.taken(told)
    assert len(world.outbox) == 0


def test_at_most_an_hour_is_kept_and_the_oldest_given_up() -> None:
    world = World(frames=10)
    for _ in range(25):
        world.second()
    world.connect()
    told: list[int] = []
    while len(world.outbox):
        told += (new := seqs(world.sent()))
        world.outbox.taken(new)
        world.seconds += 1.0
    assert told == list(range(15, 25))


def test_memory_is_bounded_whatever_a_reading_weighs() -> None:
    world = World(size=2000)
    many = [
        measured(CPU_UTILIZATION, 0.1, source="s", scope="host", label=str(index))
        for index in range(100)
    ]
    for _ in range(50):
        world.outbox.add(world.clock.local(), many)
    assert 1 <= len(world.outbox) <= 2


def test_no_time_is_told_before_the_panels_clock_is_known() -> None:
    world = World()
    world.outbox.connected()
    world.second()
    assert world.sent() == []
    local = world.clock.local()
    world.clock.hear(Pong(local, local + 40.0, local + 40.0))
    (message,) = world.sent()
    assert message.at == pytest.approx(local + 40.0)


def test_a_panel_that_answers_no_heartbeat_is_told_the_nodes_time() -> None:
    world = World()
    world.outbox.connected()
    world.second()
    world.seconds += outboxes.CLOCK_SECONDS
    (message,) = world.sent()
    assert message.at == pytest.approx(1e9 + 1001.0)


def test_after_a_restart_numbers_begin_anew() -> None:
    world = World()
    world.connect()
    world.second()
    assert seqs(world.sent()) == [0]
    world.restart()
    world.connect()
    world.second()
    assert seqs(world.sent()) == [0]


Step = Callable[["_Panel"], None]


@dataclass
class _Panel:
    """Stores what reaches it, unless it cannot; a link that is cut loses what is on its way."""

    world: World = field(default_factory=World)
    linked: bool = False
    storing: bool = True
    arrived: list[Telemetry] = field(default_factory=list)
    rows: dict[float, int] = field(default_factory=dict)
    made: int = 0

    def dial(self) -> None:
        self.world.connect()
        self.linked, self.arrived = True, []

    def cut(self) -> None:
        self.linked, self.arrived = False, []

    def second(self) -> None:
        self.world.second()
        self.made += 1
        if self.linked:
            self.arrived += self.world.sent()

    def store(self) -> None:
        if self.linked and self.storing:
            self._keep()
            self.world.outbox.taken(seqs(self.arrived))
            self.arrived = []

    def store_and_cut(self) -> None:
        """The answer is lost, so the same comes again."""
        if self.linked and self.storing:
            self._keep()
        self.cut()

    def break_down(self) -> None:
        self.storing = False
        self.arrived = []

    def mend(self) -> None:
        self.storing = True

    def _keep(self) -> None:
        for message in self.arrived:
            assert self.rows.setdefault(message.at, message.seq) == message.seq

    def settle(self) -> None:
        self.mend()
        self.dial()
        for _ in range(200):
            self.second()
            self.store()


STEPS: tuple[Step, ...] = (
    _Panel.dial,
    _Panel.cut,
    _Panel.second,
    _Panel.second,
    _Panel.second,
    _Panel.store,
    _Panel.store_and_cut,
    _Panel.break_down,
    _Panel.mend,
)


@given(st.lists(st.sampled_from(STEPS), max_size=60))
def test_whatever_breaks_every_second_arrives_exactly_once(steps: list[Step]) -> None:
    panel = _Panel()
    for step in steps:
        step(panel)
    panel.settle()
    assert sorted(panel.rows.values()) == list(range(panel.made))
    assert list(_gaps(sorted(panel.rows))) == []


def _gaps(times: list[float]) -> Iterator[float]:
    for before, after in pairwise(times):
        if not 0.5 <= after - before <= 1.5:
            yield after - before
