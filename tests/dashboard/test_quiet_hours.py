"""Quiet hours reach the agents when they begin, are taken back when they end, and are on record."""

from datetime import UTC, datetime, time

import msgspec
import pytest

from dashboard import outbox
from dashboard.choices import NodeStatus
from dashboard.lifecycle import desired_for, follow_schedule
from dashboard.lifecycle.limits import keep_states
from dashboard.markers import markers
from dashboard.models import Deployment, Event, Node
from engine.errors import Said
from engine.protocol.agent import Limits, LimitState
from monitoring.models import LimitSpan, NodeLimits, QuietRule
from tests.dashboard.pages_cast import make_launch, make_model, make_node

pytestmark = pytest.mark.django_db

DAY = datetime(2026, 11, 27, 12, tzinfo=UTC)
NIGHT = datetime(2026, 11, 27, 23, tzinfo=UTC)
MORNING = datetime(2026, 11, 28, 6, tzinfo=UTC)


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    told: list[int] = []
    monkeypatch.setattr(outbox, "nudge", told.append)
    return told


def nights(**wishes: object) -> QuietRule:
    return QuietRule.objects.create(
        name="Nights", begins=time(22), ends=time(6), **({"power_watts": 300} | wishes)
    )


def generation(node: Node) -> int:
    node.refresh_from_db()
    return node.desired_generation


def test_an_agent_is_told_once_when_they_begin_and_once_when_they_end(nudged: list[int]) -> None:
    node = make_node("box-1")
    nights()
    follow_schedule(DAY)
    assert (nudged, generation(node)) == ([], 0)
    for _ in range(2):
        follow_schedule(NIGHT)
    assert (nudged, generation(node)) == ([node.pk], 1)
    for _ in range(2):
        follow_schedule(MORNING)
    assert (nudged, generation(node)) == ([node.pk] * 2, 2)


def test_when_they_held_is_on_record(nudged: list[int]) -> None:
    node = make_node("box-1")
    nights()
    follow_schedule(NIGHT)
    assert LimitSpan.objects.get().until is None
    follow_schedule(MORNING)
    [span] = LimitSpan.objects.all()
    assert (span.node, span.since, span.until, span.why) == (node, NIGHT, MORNING, "Nights")
    texts = [event.text for event in Event.objects.order_by("pk")]
    assert texts == ["“Nights” holds it back from now on.", "It is not held back any more."]


def test_the_desired_state_has_what_holds_now_and_a_cap_for_the_heads_on_the_node() -> None:
    here, there = make_node("box-1"), make_node("box-2")
    row = Deployment.objects.create(name="smol", model=make_model(), settings={"tp": 2})
    launch = make_launch(row, here, there)
    QuietRule.objects.create(name="Cap", always=True, batch_cap=4, clock_mhz=1200)
    assert desired_for(here.pk).limits == Limits(
        clock_hertz=1.2e9, batch_caps={launch.launch: 4}, why="Cap"
    )
    assert desired_for(there.pk).limits == Limits(clock_hertz=1.2e9, why="Cap")


def test_a_rule_that_is_off_or_gone_holds_nothing(nudged: list[int]) -> None:
    node = make_node("box-1")
    rule = QuietRule.objects.create(name="Cap", always=True, power_watts=300)
    follow_schedule(DAY)
    assert desired_for(node.pk).limits.power_watts == 300
    rule.enabled = False
    rule.save()
    assert desired_for(node.pk).limits == Limits()
    follow_schedule(DAY)
    assert nudged == [node.pk] * 2
    rule.delete()
    follow_schedule(DAY)
    assert nudged == [node.pk] * 2


def test_a_launch_that_begins_at_night_is_capped_too(nudged: list[int]) -> None:
    node = make_node("box-1")
    row = Deployment.objects.create(name="smol", model=make_model())
    nights(deployment=row, batch_cap=2)
    follow_schedule(NIGHT)
    launch = make_launch(row, node)
    follow_schedule(NIGHT)
    wanted = NodeLimits.objects.get().wanted
    assert msgspec.convert(wanted, Limits).batch_caps == {launch.launch: 2}
    assert LimitSpan.objects.count() == 1  # It is the same night.


def test_a_batch_cap_holds_back_no_node_without_a_head(nudged: list[int]) -> None:
    node, other = make_node("box-1"), make_node("box-2")
    row = Deployment.objects.create(name="smol", model=make_model())
    make_launch(row, node)
    QuietRule.objects.create(name="Cap", always=True, deployment=row, batch_cap=2)
    follow_schedule(NIGHT)
    assert nudged == [node.pk]
    assert LimitSpan.objects.get().node == node
    assert desired_for(other.pk).limits == Limits()


def test_charts_are_shaded_where_they_held(nudged: list[int]) -> None:
    node, other = make_node("box-1"), make_node("box-2")
    nights(node=node)
    follow_schedule(NIGHT)
    follow_schedule(MORNING)
    shaded = [m for m in markers("fleet", None, DAY, MORNING) if m.until]
    assert [(m.at, m.until) for m in shaded] == [(NIGHT.timestamp(), MORNING.timestamp())]
    assert shaded[0].text == "“Nights” holds box-1 back"
    assert not [m for m in markers("node", other.pk, DAY, MORNING) if m.until]


def test_a_rule_goes_with_its_node_and_does_not_become_one_for_all() -> None:
    node, other = make_node("box-1", NodeStatus.OFFLINE), make_node("box-2")
    QuietRule.objects.create(name="Cap", always=True, power_watts=300, node=node)
    assert desired_for(other.pk).limits == Limits()
    node.delete()
    assert not QuietRule.objects.exists()


def test_what_an_agent_says_of_its_limits_is_kept_until_they_end(nudged: list[int]) -> None:
    node = make_node("box-1")
    nights()
    follow_schedule(NIGHT)
    said = LimitState(what="power", target="gpu:0", value=None, reason=Said("Only root may."))
    keep_states(node.pk, [said])
    kept = NodeLimits.objects.get()
    assert msgspec.convert(kept.states, list[LimitState]) == [said]
    assert kept.reported is not None
    keep_states(node.pk, [])  # Such as from an agent that has just started.
    assert NodeLimits.objects.get().states
    follow_schedule(MORNING)
    assert NodeLimits.objects.get().states == []
