"""Who may have a box updated, when it can be stopped, and that there is never a second one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard import lifecycle, outbox
from dashboard.alerting import PanelFleet
from dashboard.audit import Actor
from dashboard.choices import UNDERWAY_UPDATE_STATES, UPDATE_TRANSITIONS, UpdateState
from dashboard.errors import StatusConflict
from dashboard.lifecycle import evacuation, updates
from dashboard.models import FirmwareImage, Node, NodeUpdate, Rollout
from dashboard.sentences import Sentence
from dashboard.updates.verifying import verify
from tests.dashboard.firmware_cast import part
from tests.dashboard.update_cast import Pair, add_image, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "shortened"]

ADA, BOB = Actor("ada", None, "form"), Actor("bob", None, "form")
WORDS = Sentence("So it goes.")
SECONDS = 20.0


def test_who_made_it_does_not_approve_it(pair: Pair) -> None:
    rollout = pair.draft()
    verify(rollout)
    with pytest.raises(StatusConflict, match="Somebody else must approve it"):
        updates.approve(rollout, pair.ada, "Trust me.")
    updates.start_due()
    assert {row.state for row in rollout.updates.all()} == {UpdateState.VERIFIED}
    updates.approve(rollout, pair.bob, "Read the notes.")
    with pytest.raises(StatusConflict, match="does not wait for an approval"):
        updates.approve(rollout, pair.bob, "Read the notes.")


def test_nothing_is_approved_before_it_was_verified(pair: Pair) -> None:
    with pytest.raises(StatusConflict):
        updates.approve(pair.draft(), pair.bob, "Read the notes.")


def test_a_form_that_is_sent_again_is_the_same_roll_out(pair: Pair) -> None:
    first = pair.draft()
    again = pair.draft(image=first.image)
    other = updates.draft(
        first.image, pair.parts("BMC"), token="form-1", reason="Replayed.", actor=pair.bob
    )
    assert first.pk == again.pk == other.pk
    assert Rollout.objects.count() == 1
    assert NodeUpdate.objects.count() == 2


def test_a_box_is_in_one_roll_out_at_a_time(pair: Pair) -> None:
    pair.draft()
    with pytest.raises(StatusConflict, match="node-a is in an update already"):
        pair.draft("BMC", token="form-2")
    one = pair.parts("BMC")[0]
    with pytest.raises(StatusConflict, match="Choose one component of each node"):
        pair.draft("BMC", token="form-3", image=FirmwareImage.objects.first(), parts=[one, one])


def test_it_does_not_begin_before_its_time(pair: Pair) -> None:
    rollout = pair.approved(not_before=timezone.now() + timedelta(hours=1))
    pair.work()
    assert pair.update(pair.a).state == UpdateState.APPROVED
    Rollout.objects.filter(pk=rollout.pk).update(not_before=timezone.now())
    updates.start_due()
    assert pair.update(pair.a).state == UpdateState.DRAINING


@pytest.mark.parametrize("state", [UpdateState.DRAINING, UpdateState.PRECHECK])
def test_it_can_be_cancelled_before_anything_was_sent(pair: Pair, state: UpdateState) -> None:
    rollout = pair.approved()
    pair.until_state(pair.a, UpdateState.DRAINING)
    if state == UpdateState.PRECHECK:
        updates.move(pair.update(pair.a), state, WORDS)
    assert Node.objects.get(pk=pair.a.pk).evacuated
    updates.cancel(rollout, pair.bob)
    pair.work()
    for node, lab in ((pair.a, pair.lab_a), (pair.b, pair.lab_b)):
        assert pair.update(node).state == UpdateState.CANCELLED
        pair.nothing_happened_to(node, lab)
    with pytest.raises(StatusConflict, match="It has ended"):
        updates.cancel(rollout, pair.bob)


@pytest.mark.parametrize("state", [UpdateState.UPLOADING, UpdateState.APPLYING])
def test_it_cannot_be_cancelled_afterwards(pair: Pair, state: UpdateState) -> None:
    rollout = pair.approved()
    pair.until_state(pair.a, UpdateState.DRAINING)
    for to in (UpdateState.PRECHECK, UpdateState.UPLOADING, UpdateState.APPLYING):
        updates.move(pair.update(pair.a), to, WORDS)
        if to == state:
            break
    with pytest.raises(StatusConflict, match="node-a is being changed; that cannot be broken off"):
        updates.cancel(rollout, pair.bob)
    assert pair.update(pair.b).state == UpdateState.APPROVED


def test_only_a_person_gives_a_held_box_back(pair: Pair) -> None:
    pair.lab_a.turn(fault="verify")
    pair.approved()
    pair.held(pair.a)
    assert {facts.name: facts.held is not None for facts in PanelFleet().nodes()} == {
        "node-a": True,
        "node-b": False,
    }
    second = pair.approved("BMC", token="form-2", parts=pair.parts("BMC")[1:])
    pair.work()
    assert pair.update(pair.b, second).state == UpdateState.APPROVED
    with pytest.raises(StatusConflict, match="A firmware update holds node-a; release it there"):
        evacuation.give_back(Node.objects.get(pk=pair.a.pk), pair.bob)
    updates.release(pair.update(pair.a), pair.bob)
    assert not Node.objects.get(pk=pair.a.pk).evacuated
    assert not any(facts.held for facts in PanelFleet().nodes())
    with pytest.raises(StatusConflict, match="It is not held"):
        updates.release(pair.update(pair.a), pair.bob)
    pair.until(lambda: pair.update(pair.b, second).state == UpdateState.RELEASED)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Side by side, each over a connection of its own; what they answer or raise."""
    gate = Barrier(len(works))

    def one(work: Callable[[], Any]) -> Any:
        gate.wait(SECONDS)
        try:
            return work()
        except StatusConflict as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


@pytest.fixture
def rows(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any
) -> FirmwareImage:
    """Two nodes with a part each, and an image; nothing behind them."""
    settings.STATE_DIR = tmp_path
    monkeypatch.setattr(outbox, "_queue", lambda *arguments: None)
    monkeypatch.setattr(outbox, "_send", lambda *arguments: None)
    for name in ("node-a", "node-b"):
        node, _token = lifecycle.create_node(name, "10.0.0.1")
        part(node, "BIOS", "1.0.0", component="uefi", updatable=True)
    return add_image("BIOS")


def parts_of(*names: str) -> list[Any]:
    return [Node.objects.get(name=name).firmware.get() for name in names]


def test_two_administrators_at_once_make_one_roll_out(rows: FirmwareImage) -> None:
    def make(token: str, actor: Actor, *names: str) -> Callable[[], Rollout]:
        return lambda: updates.draft(
            rows, parts_of(*names), token=token, reason="Holes.", actor=actor
        )

    both = at_once(make("1", ADA, "node-a", "node-b"), make("2", BOB, "node-b", "node-a"))
    assert sorted(type(one).__name__ for one in both) == ["Rollout", "StatusConflict"]
    clicks = at_once(*[make("3", ADA)] * 2)
    assert all(isinstance(one, StatusConflict) for one in clicks)
    assert Rollout.objects.count() == 1


def test_a_double_click_makes_one_roll_out(rows: FirmwareImage) -> None:
    def make() -> Rollout:
        return updates.draft(rows, parts_of("node-a"), token="1", reason="Holes.", actor=ADA)

    first, second, third = at_once(make, make, make)
    assert first == second == third
    assert NodeUpdate.objects.count() == 1


def test_two_that_start_at_once_start_one(rows: FirmwareImage) -> None:
    for token, name in (("1", "node-a"), ("2", "node-b")):
        rollout = updates.draft(rows, parts_of(name), token=token, reason="Holes.", actor=ADA)
        verify(rollout)
    approvals = [
        lambda rollout=rollout: updates.approve(rollout, BOB, "Yes.")
        for rollout in Rollout.objects.all()
    ]
    assert at_once(*approvals) == [None, None]
    assert at_once(*[updates.start_due] * 3) == [None] * 3
    assert NodeUpdate.objects.filter(state=UpdateState.DRAINING).count() == 1
    assert NodeUpdate.objects.filter(state=UpdateState.APPROVED).count() == 1
    assert Node.objects.filter(evacuated=True).count() == 1


NODES = ("node-1", "node-2", "node-3")
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("draft"), st.sets(st.sampled_from(NODES), min_size=1)),
        st.tuples(st.sampled_from(["verify", "approve", "cancel", "release"]), st.integers(0, 3)),
        st.tuples(st.just("start"), st.just(0)),
        st.tuples(st.just("go"), st.integers(0, 4)),
        st.tuples(st.just("hold"), st.just(0)),
    ),
    max_size=30,
)


class Board:
    """Anybody does anything in any order."""

    def __init__(self, image: FirmwareImage) -> None:
        self.image, self.made = image, 0

    def do(self, what: str, which: Any) -> None:
        rollouts = list(Rollout.objects.order_by("pk"))
        chosen = rollouts[which % len(rollouts)] if rollouts and isinstance(which, int) else None
        out = NodeUpdate.objects.filter(state__in=UNDERWAY_UPDATE_STATES).first()
        match what:
            case "draft":
                self.made += 1
                parts = [Node.objects.get(name=name).firmware.get() for name in sorted(which)]
                updates.draft(self.image, parts, token=str(self.made), reason="?", actor=ADA)
            case "start":
                updates.start_due()
            case "go" if out is not None:
                ways = sorted(UPDATE_TRANSITIONS[UpdateState(out.state)] - {UpdateState.CANCELLED})
                self.go(out, ways[which % len(ways)])
            case "hold" if out is not None:
                updates.hold(out, WORDS)
            case "release" if out is not None:
                updates.release(out, BOB)
            case "verify" if chosen is not None:
                updates.conclude_verification(chosen, None)
            case "approve" if chosen is not None:
                updates.approve(chosen, BOB, "Yes.")
            case "cancel" if chosen is not None:
                updates.cancel(chosen, BOB)

    def go(self, out: NodeUpdate, to: UpdateState) -> None:
        if to == UpdateState.HELD:
            updates.hold(out, WORDS)
        elif out.state == UpdateState.HELD:
            updates.release(out, BOB)
        elif to == UpdateState.RELEASED:
            updates.complete(out, WORDS)
        else:
            updates.move(out, to, WORDS)


@pytest.fixture
def board(db: None, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any) -> FirmwareImage:
    settings.STATE_DIR = tmp_path
    for name in NODES:
        node, _token = lifecycle.create_node(name, "10.0.0.1")
        part(node, "BIOS", "1.0.0", component="uefi", updatable=True)
    return add_image("BIOS")


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(moves=MOVES)
def test_never_are_two_boxes_out_for_firmware(
    board: FirmwareImage, moves: list[tuple[str, Any]]
) -> None:
    with transaction.atomic():
        play = Board(board)
        for what, which in moves:
            try:
                with transaction.atomic():
                    play.do(what, which)
            except StatusConflict:
                pass
            out = NodeUpdate.objects.filter(state__in=UNDERWAY_UPDATE_STATES)
            nodes = set(out.values_list("node", flat=True))
            assert len(nodes) <= 1
            assert set(Node.objects.filter(evacuated=True).values_list("pk", flat=True)) == nodes
        transaction.set_rollback(True)
    assert not connection.needs_rollback
