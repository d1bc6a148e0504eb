"""A worker that is killed at any step of an update: the next one ends it, and nothing is sent or
done twice."""

from datetime import timedelta
from typing import Any

import pytest

from dashboard.choices import UpdateState
from dashboard.errors import StatusConflict
from dashboard.lifecycle import updates
from dashboard.models import NodeUpdate
from dashboard.sentences import Sentence
from dashboard.updates import applying, patience, resets, runner, uploading
from dashboard.updates.redfish import Away, UpdateClient
from tests.dashboard.update_cast import Pair, boot, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "shortened"]


class Killed(BaseException):
    """The worker's process is gone, with all that it had not written down."""


class Killer:
    """Lets the work be done once, or not at all, and the worker die before it can tell."""

    def __init__(self, real: Any, *, before: bool = False) -> None:
        self.real, self.before, self.done = real, before, False

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if self.done:
            return self.real(*arguments, **options)
        self.done = True
        if not self.before:
            self.real(*arguments, **options)
        raise Killed

    def __get__(self, owner: Any, _kind: Any = None) -> Any:
        """As a method."""
        return lambda *arguments, **options: self(owner, *arguments, **options)


def see_to_its_end(pair: Pair) -> None:
    """Workers come again after they are killed, and find what was left long ago."""
    ends = (UpdateState.RELEASED, UpdateState.HELD)

    def done() -> bool:
        update = pair.update(pair.a)
        if update.state == UpdateState.REBOOTING and pair.lab_a.resets:
            boot(pair.a, "second")
        return update.state in ends

    try:
        pair.until(done)
    except Killed:
        pair.overdue()
        pair.until(done)


@pytest.mark.parametrize("state", [*runner.STEPS, "judge"])
def test_it_ends_right_with_one_image(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, state: UpdateState | str
) -> None:
    steps = dict(runner.STEPS)
    killer = Killer(steps[UpdateState.APPLYING if state == "judge" else UpdateState(state)])
    if state == "judge":
        killer.real = applying._judge
        monkeypatch.setattr(applying, "_judge", killer)
    else:
        steps[UpdateState(state)] = killer
    monkeypatch.setattr(runner, "STEPS", steps)
    pair.lab_a.turn(needs_reset=True)
    pair.approved(parts=pair.parts("BIOS")[:1])
    see_to_its_end(pair)
    assert killer.done
    assert pair.update(pair.a).state == UpdateState.RELEASED, pair.story()
    assert len(pair.lab_a.images) == 1
    assert len(pair.lab_a.resets) == 1
    assert any("worker or its message" in str(one) for one in pair.update(pair.a).notes.all())


@pytest.mark.parametrize(
    ("looks", "words"),
    [(6, "The BMC is at it already."), (0, "The BMC has taken it already.")],
    ids=["while it is at it", "when it is done"],
)
def test_what_the_bmc_has_got_is_not_sent_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, looks: int, words: str
) -> None:
    killer = Killer(UpdateClient.push)
    monkeypatch.setattr(UpdateClient, "push", killer)
    pair.lab_a.turn(looks=looks)
    pair.approved(parts=pair.parts("BIOS")[:1])
    see_to_its_end(pair)
    assert pair.update(pair.a).state == UpdateState.RELEASED, pair.story()
    assert len(pair.lab_a.images) == 1
    assert words in [str(one) for one in pair.update(pair.a).notes.all()]


def test_what_the_bmc_may_have_got_is_not_sent_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UpdateClient, "push", Killer(UpdateClient.push, before=True))
    pair.approved(parts=pair.parts("BIOS")[:1])
    see_to_its_end(pair)
    update = pair.update(pair.a)
    assert update.state == UpdateState.HELD
    assert str(update.reason) == uploading.LOST
    assert pair.lab_a.images == []


def test_what_the_bmc_was_told_to_fetch_it_is_not_told_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:9"
    monkeypatch.setattr(UpdateClient, "post", Killer(UpdateClient.post))
    pair.lab_a.turn(multipart=False)
    pair.approved(parts=pair.parts("BIOS")[:1])
    see_to_its_end(pair)
    assert pair.update(pair.a).state == UpdateState.HELD
    assert pair.lab_a.told()["tasks"] == 1


def test_a_bmc_that_is_away_when_the_next_worker_asks_is_asked_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UpdateClient, "push", Killer(UpdateClient.push))
    away = Killer(UpdateClient.tasks, before=True)
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, UpdateState.DRAINING)
    with pytest.raises(Killed):
        pair.until(lambda: False)

    def silent(client: UpdateClient) -> list[str]:
        if not away.done:
            away.done = True
            raise Away("Nothing answers.")
        found: list[str] = away.real(client)
        return found

    monkeypatch.setattr(UpdateClient, "tasks", silent)
    pair.overdue()
    pair.until(lambda: "is not known yet" in str(pair.update(pair.a).reason))
    pair.until_state(pair.a, UpdateState.RELEASED)
    assert len(pair.lab_a.images) == 1


def test_time_without_a_worker_is_not_held_against_a_step(pair: Pair) -> None:
    pair.lab_a.turn(needs_reset=True)
    pair.approved(parts=pair.parts("BIOS")[:1])
    before = pair.until_state(pair.a, UpdateState.REBOOTING).deadline_at
    pair.overdue()
    after = pair.update(pair.a).deadline_at
    assert before is not None
    assert after is not None
    assert timedelta(minutes=55) < after - before < timedelta(minutes=65)


@pytest.mark.parametrize("name", ["BIOS", "BMC"])
def test_a_restart_that_was_not_asked_for_after_all_is_asked_for_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("dashboard.updates.patience.GRACE", patience.SETTLE)
    monkeypatch.setattr(resets, "ask", Killer(resets.ask, before=True))
    pair.lab_a.turn(needs_reset=True)
    pair.approved(name, parts=pair.parts(name)[:1])
    see_to_its_end(pair)
    assert pair.update(pair.a).state == UpdateState.RELEASED, pair.story()
    assert [reset["kind"] for reset in pair.lab_a.resets] == ["ForceRestart"]


def test_a_step_that_kills_its_workers_is_held_in_the_end(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deadly(update: NodeUpdate) -> None:
        raise Killed

    monkeypatch.setattr(updates, "MAX_RESUMES", 2)
    monkeypatch.setitem(runner.STEPS, UpdateState.PRECHECK, deadly)
    pair.approved(parts=pair.parts("BIOS")[:1])
    for _again in range(5):
        try:
            pair.work()
        except Killed:
            pair.overdue()
    assert "Its worker was lost 3 times" in pair.held(pair.a)


def test_a_worker_that_was_only_slow_changes_nothing_any_more(pair: Pair) -> None:
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, UpdateState.DRAINING)
    slow = pair.update(pair.a)
    claimed = updates.claim(slow.pk, slow.ticket)
    assert claimed is not None
    pair.overdue()
    with pytest.raises(StatusConflict):
        updates.hold(claimed, Sentence("Late."))
    updates.look_again(claimed, 0.0)
    pair.until_state(pair.a, UpdateState.RELEASED)
    assert len(pair.lab_a.images) == 1
