"""The monthly update: off unless it is switched on, and never without somebody's approval."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dashboard import panel_settings
from dashboard.choices import UpdateState
from dashboard.configuration.panel import PANEL
from dashboard.errors import StatusConflict
from dashboard.firmware import preapproval
from dashboard.lifecycle import updates
from dashboard.models import AuditEntry, FirmwareImage, NodeUpdate, Rollout
from dashboard.updates import automatic
from tests.dashboard.update_cast import Pair, add_image, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "shortened"]


@pytest.fixture
def switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: Mapping[str, Any] = PANEL.complete({"firmware_automatic": True})
    monkeypatch.setattr(panel_settings, "current", lambda: settings)


def month_ago() -> None:
    for row in Rollout.objects.all():
        then = timezone.now() - timedelta(days=32)
        Rollout.objects.filter(pk=row.pk).update(at=then, token=f"then {row.token}")


def test_it_is_off_by_default(pair: Pair) -> None:
    add_image("BIOS")
    automatic.make_due()
    assert not Rollout.objects.exists()


def test_the_newest_image_waits_for_its_approval(pair: Pair, switched_on: None) -> None:
    add_image("BIOS", "1.0.5")
    add_image("BIOS", "1.2.0")
    add_image("BIOS", "1.1.0")
    add_image("BIOS", "9.0.0", fits=["BIOS of another box"])
    automatic.make_due()
    automatic.make_due()
    rollout = Rollout.objects.get()
    assert rollout.image.version == "1.2.0"
    assert rollout.automatic
    assert [(row.node.name, row.state) for row in rollout.updates.order_by("order")] == [
        ("node-a", UpdateState.VERIFIED),
        ("node-b", UpdateState.VERIFIED),
    ]
    pair.work()
    assert pair.lab_a.images == []


def test_an_image_that_was_approved_beforehand_begins(pair: Pair, switched_on: None) -> None:
    image = add_image("BIOS", uploaded_by=User.objects.get(username="ada"))
    with pytest.raises(StatusConflict, match="Somebody else must approve it"):
        preapproval.give(image, pair.ada, "Mine.")
    preapproval.give(image, pair.bob, "Ran a week on the spare box.")
    automatic.make_due()
    pair.until_state(pair.a, UpdateState.DRAINING)
    rollout = Rollout.objects.get()
    assert (rollout.approved_by, rollout.approval_reason) == (
        "bob",
        "Ran a week on the spare box.",
    )
    entry = AuditEntry.objects.get(action="firmware.approve")
    assert (entry.actor, entry.via) == ("bob", "schedule")


@pytest.mark.parametrize("lost", ["withdrawn", "no administrator any more"])
def test_an_approval_that_does_not_hold_any_more(pair: Pair, switched_on: None, lost: str) -> None:
    image = add_image("BIOS")
    preapproval.give(image, pair.bob, "Fine.")
    if lost == "withdrawn":
        preapproval.withdraw(image, pair.ada)
    else:
        User.objects.filter(username="bob").update(is_superuser=False)
    automatic.make_due()
    assert {row.state for row in NodeUpdate.objects.all()} == {UpdateState.VERIFIED}


def test_once_a_month_for_each_kind_of_component(pair: Pair, switched_on: None) -> None:
    add_image("BIOS")
    add_image("BMC")
    for count in (1, 2, 2):
        automatic.make_due()
        assert Rollout.objects.count() == count
        for rollout in Rollout.objects.filter(finished_at=None):
            updates.cancel(rollout, pair.bob)
    assert [one.image.component for one in Rollout.objects.order_by("pk")] == ["bmc", "uefi"]
    month_ago()
    automatic.make_due()
    assert Rollout.objects.count() == 3


def test_what_failed_on_a_box_is_not_tried_there_again(pair: Pair, switched_on: None) -> None:
    pair.lab_a.turn(fault="verify")
    preapproval.give(add_image("BIOS"), pair.bob, "Fine.")
    automatic.make_due()
    pair.held(pair.a)
    month_ago()
    automatic.make_due()
    [again] = Rollout.objects.order_by("pk")[1:]
    assert [row.node.name for row in again.updates.all()] == ["node-b"]


def test_versions_that_cannot_be_compared_are_left_to_people(pair: Pair, switched_on: None) -> None:
    add_image("BIOS", "1.2.0")
    add_image("BIOS", "1.2.0-rc1")
    automatic.make_due()
    assert not Rollout.objects.exists()


def test_a_box_that_is_in_another_update_is_left_alone(pair: Pair, switched_on: None) -> None:
    pair.draft("BMC")
    add_image("BIOS")
    automatic.make_due()
    assert not Rollout.objects.filter(automatic=True).exists()
    assert FirmwareImage.objects.count() == 2
