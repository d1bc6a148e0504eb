"""An update that goes well, by each way that a BMC may take it."""

from datetime import timedelta

import pytest

from dashboard.choices import UpdateState
from dashboard.errors import StatusConflict
from dashboard.lifecycle import evacuation, updates
from dashboard.models import AuditEntry, Event, FirmwarePart, Node
from dashboard.sentences import Sentence
from dashboard.updates.verifying import verify
from tests.dashboard.update_cast import (
    NEW,
    Pair,
    add_image,
    boot,
    both_labs,
    enter_bmc,
    pair,
    shortened,
)

__all__ = ["both_labs", "pair", "shortened"]

RELEASED = UpdateState.RELEASED


def active(node: Node, name: str = "BIOS") -> str:
    return FirmwarePart.objects.get(node=node, key=f"redfish:{name}").active


def test_one_box_after_the_other(pair: Pair) -> None:
    rollout = pair.approved()
    pair.until_state(pair.a, RELEASED)
    assert pair.update(pair.b).state in (UpdateState.APPROVED, UpdateState.DRAINING)
    pair.until_state(pair.b, RELEASED)
    for node, lab in ((pair.a, pair.lab_a), (pair.b, pair.lab_b)):
        assert active(node) == NEW["BIOS"]
        assert [image["sha256"] for image in lab.images] == [rollout.image.sha256]
        assert not Node.objects.get(pk=node.pk).evacuated
    rollout.refresh_from_db()
    assert rollout.finished_at
    assert not rollout.stopped.message
    words = [str(event) for event in Event.objects.filter(node=pair.a)]
    assert any("Firmware 1.1.0 is in use, after 1.0.0." in one for one in words)
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"firmware.draft", "firmware.approve"} <= actions


def test_the_bmc_is_handed_the_image_with_its_target(pair: Pair) -> None:
    pair.approved(allow_downgrade=True, parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, RELEASED)
    [image] = pair.lab_a.images
    assert image["way"] == "push"
    assert image["parameters"] == {
        "Targets": ["/redfish/v1/UpdateService/FirmwareInventory/BIOS"],
        "@Redfish.OperationApplyTime": "Immediate",
        "ForceUpdate": True,
    }


def test_a_time_that_the_bmc_does_not_know_is_not_asked_for(pair: Pair) -> None:
    times = {"SupportedValues": ["AtMaintenanceWindowStart"]}
    name = "MultipartHttpPushUri@Redfish.OperationApplyTimeSupport"
    pair.lab_a.turn(service={name: times})
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, RELEASED)
    [image] = pair.lab_a.images
    assert list(image["parameters"]) == ["Targets"]


def test_a_box_that_was_out_of_service_before_stays_out(pair: Pair) -> None:
    evacuation.evacuate(pair.a, pair.ada, Sentence("Its fan is loud."))
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, RELEASED)
    assert active(pair.a) == NEW["BIOS"]
    assert Node.objects.get(pk=pair.a.pk).evacuated


@pytest.mark.parametrize("shape", ["task", "empty", "monitor", "nothing"])
def test_however_it_says_that_it_took_the_image(pair: Pair, shape: str) -> None:
    pair.lab_a.turn(accepted=shape)
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, RELEASED)
    assert active(pair.a) == NEW["BIOS"]


def test_a_bmc_that_opens_no_sessions(pair: Pair) -> None:
    pair.lab_a.turn(sessions=False)
    enter_bmc(pair.a, pair.lab_a, auth="basic")
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, RELEASED)
    assert pair.lab_a.told()["failed_signins"] == 0


def test_a_pinned_certificate(pair: Pair) -> None:
    enter_bmc(pair.a, pair.lab_a, ca="", fingerprint=pair.lab_a.certificate.fingerprint)
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, RELEASED)


@pytest.mark.parametrize("busy", [False, True], ids=["gone", "503"])
def test_a_bmc_that_starts_itself_anew_while_it_is_looked_at(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    monkeypatch.setattr("dashboard.updates.patience.AWAY", timedelta(minutes=1))
    pair.lab_a.turn(silent_after=2, silent_asks=3, looks=4, busy=busy)
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until(lambda: "silent" in str(pair.update(pair.a).reason))
    pair.until_state(pair.a, RELEASED)
    assert active(pair.a) == NEW["BIOS"]


def test_a_task_that_is_gone_is_judged_by_the_inventory(pair: Pair) -> None:
    pair.lab_a.turn(reap_after=1, seconds=0.01)
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, RELEASED)
    assert active(pair.a) == NEW["BIOS"]


def test_what_needs_a_reset_gets_one_by_itself(pair: Pair) -> None:
    pair.lab_a.turn(needs_reset=True)
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, UpdateState.REBOOTING)
    pair.until(lambda: bool(pair.lab_a.resets))
    assert pair.lab_a.resets == [{"of": "ComputerSystem", "kind": "GracefulRestart"}]
    for _again in range(3):
        pair.work()
    assert pair.update(pair.a).state == UpdateState.REBOOTING
    pair.restart(pair.a, pair.lab_a)
    pair.until_state(pair.a, RELEASED)
    assert active(pair.a) == NEW["BIOS"]


def test_settings_that_the_update_has_put_back_are_told(pair: Pair) -> None:
    pair.lab_a.turn(needs_reset=True, forgets={"PowerProfile": "Balanced"})
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.restart(pair.a, pair.lab_a)
    update = pair.until_state(pair.a, RELEASED)
    told = [str(one) for one in update.notes.all()]
    words = "Settings of the firmware are not what they were: PowerProfile: Quiet → Balanced"
    assert words in told
    assert "hunter2" not in str(update.memory)


def test_staged_now_and_activated_when_a_person_says_so(pair: Pair) -> None:
    pair.approved(on_reset=True, parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, UpdateState.AWAITING_RESET)
    part = FirmwarePart.objects.get(node=pair.a, key="redfish:BIOS")
    assert (part.active, part.staged) == ("1.0.0", NEW["BIOS"])
    for _again in range(3):
        pair.work()
    assert pair.lab_a.resets == []
    updates.ask_for_reset(pair.update(pair.a), pair.bob)
    pair.restart(pair.a, pair.lab_a)
    pair.until_state(pair.a, RELEASED)
    assert active(pair.a) == NEW["BIOS"]
    with pytest.raises(StatusConflict):
        updates.ask_for_reset(pair.update(pair.a), pair.bob)


def test_a_bmc_updates_itself_while_the_node_goes_on(pair: Pair) -> None:
    pair.lab_a.turn(needs_reset=True, resets_seconds=0.3)
    pair.approved("BMC", parts=pair.parts("BMC")[:1])
    pair.until_state(pair.a, RELEASED)
    assert pair.lab_a.resets == [{"of": "Manager", "kind": "GracefulRestart"}]
    assert active(pair.a, "BMC") == NEW["BMC"]


def test_a_restart_that_does_not_come_is_forced_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.lab_a.turn(needs_reset=True)
    monkeypatch.setattr("dashboard.updates.patience.GRACE", timedelta(seconds=0.1))
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until(lambda: len(pair.lab_a.resets) == 2)
    boot(pair.a, "second")
    pair.until_state(pair.a, RELEASED)
    assert [reset["kind"] for reset in pair.lab_a.resets] == ["GracefulRestart", "ForceRestart"]


def test_an_older_version_only_where_it_is_allowed(pair: Pair) -> None:
    older = add_image("BIOS", "0.9.0")
    refused = pair.draft(image=older, token="form-1")
    verify(refused)
    refused.refresh_from_db()
    assert "0.9.0 is older" in str(refused.stopped)
    one = pair.parts("BIOS")[:1]
    allowed = pair.approved(image=older, token="form-2", allow_downgrade=True, parts=one)
    pair.until(lambda: pair.update(pair.a, allowed).state == RELEASED)
    assert active(pair.a) == "0.9.0"


def test_the_newest_roll_out_waits_for_the_oldest(pair: Pair) -> None:
    first = pair.approved(parts=pair.parts("BIOS")[1:], token="form-1")
    second = pair.approved("BMC", parts=pair.parts("BMC")[:1], token="form-2")
    pair.until(lambda: pair.update(pair.a, second).state == RELEASED)
    ended, began = pair.update(pair.b, first).finished_at, pair.update(pair.a, second).started_at
    assert ended is not None
    assert began is not None
    assert ended <= began
