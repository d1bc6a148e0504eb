"""The panel's clock, learnt from heartbeats: the best answer counts, and time never runs back."""

import logging
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agent.clock import UNANSWERED, UNASKED, PanelClock
from engine.protocol.agent import Pong


@dataclass
class World:
    """`wall` is the node's clock, `panel` the panel's, `steady` only counts."""

    steady: float = 500.0
    wall: float = 1e9
    panel: float = 1e9
    clock: PanelClock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = PanelClock(lambda: self.steady, lambda: self.wall)

    def sleep(self, seconds: float) -> None:
        self.steady += seconds
        self.wall += seconds
        self.panel += seconds

    def beat(self, there: float = 0.001, back: float = 0.001) -> None:
        asked = self.clock.local()
        self.sleep(there)
        heard = self.panel
        self.sleep(0.0005)
        answered = self.panel
        self.sleep(back)
        self.clock.hear(Pong(asked, heard, answered))

    def stamp(self) -> float:
        return self.clock.stamp(self.clock.local())


def test_the_difference_is_unknown_until_a_heartbeat_is_answered() -> None:
    world = World(panel=1e9 + 3.0)
    assert world.clock.skew() is None
    assert world.clock.sample().reason == UNASKED
    world.beat()
    sample = world.clock.sample()
    assert sample.value == pytest.approx(3.0, abs=1e-5)
    assert (sample.kind, sample.source) == ("measured", "panel: heartbeats")


def test_the_answer_with_the_least_round_trip_is_believed() -> None:
    world = World(panel=1e9 - 2.0)
    world.beat(there=0.3, back=0.01)
    world.beat(there=0.002, back=0.002)
    world.beat(there=0.01, back=0.4)
    assert world.clock.skew() == pytest.approx(-2.0, abs=1e-5)


def test_what_was_told_over_a_minute_ago_is_no_statement_about_now() -> None:
    world = World()
    world.beat()
    world.sleep(61.0)
    assert world.clock.sample().reason == UNANSWERED
    assert world.stamp() == pytest.approx(world.panel, abs=1e-4), "stamps go on nevertheless"


def test_a_node_whose_clock_is_set_makes_no_hole_and_no_second_twice() -> None:
    world, stamps = World(), []
    for second in range(20):
        if second == 10:
            world.wall -= 3600.0
        if second == 15:
            world.wall += 7200.0
        world.beat()
        stamps.append(world.stamp())
        world.sleep(1.0 - 0.0025)
    steps = [after - before for before, after in pairwise(stamps)]
    assert steps == pytest.approx([1.0] * 19, abs=1e-4)
    assert world.clock.skew() == pytest.approx(world.panel - world.wall, abs=1e-3)


def test_a_panel_that_is_set_forward_is_followed_at_once() -> None:
    world = World()
    world.beat()
    world.panel += 20.0
    world.beat(there=0.01, back=0.01)
    assert world.stamp() == pytest.approx(world.panel, abs=0.05)


def test_a_panel_that_is_set_back_a_little_is_waited_for() -> None:
    world, stamps = World(), []
    world.beat()
    stamps.append(world.stamp())
    world.panel -= 5.0
    for _ in range(15):
        world.sleep(1.0)
        world.beat()
        stamps.append(world.stamp())
    assert stamps == sorted(set(stamps))
    assert stamps[-1] == pytest.approx(world.panel, abs=0.05)


def test_a_panel_that_is_set_back_far_is_followed_or_it_would_refuse_every_reading() -> None:
    world = World()
    world.beat()
    world.stamp()
    world.panel -= 3600.0
    world.beat()
    assert world.stamp() == pytest.approx(world.panel, abs=0.05)


def test_an_answer_to_no_question_of_this_agent_is_passed_over() -> None:
    world = World()
    world.clock.hear(Pong(world.clock.local() + 50.0, world.panel, world.panel))
    world.clock.hear(Pong(0.0, world.panel, world.panel))
    assert not world.clock.known


def test_a_clock_that_is_far_off_is_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World(panel=1e9 + 12.0)
    with caplog.at_level(logging.WARNING, "engine.agent.clock"):
        for _ in range(5):
            world.beat()
            world.sleep(1.0)
    assert len(caplog.records) == 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["beat", "node", "panel", "nothing"]),
            st.floats(-50.0, 50.0),
            st.floats(0.0, 0.5),
        ),
        max_size=40,
    )
)
def test_stamps_only_grow(events: list[tuple[str, float, float]]) -> None:
    """Unless the panel is set back by a minute or more, in one step or in several."""
    world, last, behind = World(), 0.0, 0.0
    for what, seconds, delay in events:
        if what == "beat":
            world.beat(delay, 0.5 - delay)
        elif what == "node":
            world.wall += seconds
        elif what == "panel":
            behind = max(0.0, behind - seconds)
            if behind > 50.0:
                return
            world.panel += seconds
        world.sleep(1.0)
        stamp = world.stamp()
        assert stamp > last
        last = stamp
