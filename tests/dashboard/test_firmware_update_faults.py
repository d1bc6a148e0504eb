"""What goes wrong while a box is updated: it is held and explained, and the other box serves on."""

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from dashboard.choices import UpdateState
from dashboard.models import Deployment, Event, Node, NodeUpdate
from tests.dashboard.pages_cast import make_smol
from tests.dashboard.update_cast import Pair, both_labs, enter_bmc, pair, shortened
from tests.peers.bmc import make_certificate

__all__ = ["both_labs", "pair", "shortened"]

FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "the image is found bad": (
        {"fault": "verify"},
        "The BMC gave the update up (Exception): The signature of the image is not valid.",
    ),
    "it hangs": ({"fault": "stall", "seconds": 0.01}, "The BMC's task stands still at 40 %"),
    "a person is needed": (
        {"fault": "person"},
        "The BMC waits for a person: Confirm on the front panel.",
    ),
    "the image is refused": (
        {"fault": "refuse"},
        "The BMC does not take the image: HTTP 400: The BMC is locked.",
    ),
    "it vanishes while the image is sent": (
        {"fault": "vanish"},
        "The BMC went away while the image was sent: ",
    ),
    "it is done and nothing has changed": (
        {"fault": "unchanged"},
        "The task ended, but BIOS still runs 1.0.0. Look at the BMC's own log.",
    ),
    "the task is gone and nothing has changed": (
        {"fault": "unchanged", "reap_after": 1},
        "The task ended, but BIOS still runs 1.0.0. Look at the BMC's own log.",
    ),
    "it does not come back from its own start": (
        {"silent_after": 2, "silent_seconds": 60.0, "seconds": 5.0},
        "The BMC has not answered for ",
    ),
    "a power supply has failed": (
        {"supply": "Critical"},
        "A power supply of node-a is in a critical state; see to it first.",
    ),
}


def held_alone(pair: Pair, words: str, images: int | None = None) -> None:
    """The box stays out, the roll-out is over, the other box was not touched."""
    reason = pair.held(pair.a)
    assert reason.startswith(words), f"{reason}\n{pair.story()}"
    assert Node.objects.get(pk=pair.a.pk).evacuated
    other = pair.update(pair.b)
    assert other.state == UpdateState.CANCELLED
    assert str(other.reason) == "Stopped, because node-a is held."
    other.rollout.refresh_from_db()
    assert words in str(other.rollout.stopped)
    assert other.rollout.finished_at
    pair.nothing_happened_to(pair.b, pair.lab_b)
    events = [str(event) for event in Event.objects.filter(node=pair.a, level="error")]
    assert any("The firmware update is held: " in one for one in events)
    for _again in range(3):
        pair.work()
    assert pair.update(pair.a).state == UpdateState.HELD
    if images is not None:
        assert len(pair.lab_a.images) == images


def time_runs_out(pair: Pair, words: str) -> None:
    """While this is waited for."""
    pair.until(lambda: str(pair.update(pair.a).reason) == words)
    NodeUpdate.objects.filter(node=pair.a).update(deadline_at=timezone.now())
    held_alone(pair, f"It took longer than allowed; last seen: {words}", images=1)


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_held_with_its_reason(pair: Pair, name: str) -> None:
    knobs, words = FAULTS[name]
    pair.lab_a.turn(**knobs)
    pair.approved()
    sent = 0 if knobs.get("fault") == "refuse" or "supply" in knobs else 1
    held_alone(pair, words, images=sent)


def test_a_wrong_password_is_tried_once(pair: Pair) -> None:
    pair.approved()
    enter_bmc(pair.a, pair.lab_a, password="old")
    held_alone(pair, "The BMC refused the user name or the password.", images=0)
    assert pair.lab_a.told()["failed_signins"] == 1


@pytest.mark.parametrize("kind", ["another", "expired"])
def test_a_certificate_that_is_not_trusted(pair: Pair, tmp_path: Path, kind: str) -> None:
    pair.approved()
    if kind == "another":
        enter_bmc(pair.a, pair.lab_a, ca=make_certificate(tmp_path, "bmc-a").pem)
    else:
        past = datetime.now(UTC) - timedelta(days=30)
        old = make_certificate(tmp_path, "bmc-a", made=past)
        pair.lab_a.turn(certificate=str(old.path))
        enter_bmc(pair.a, pair.lab_a, ca=old.pem)
    held_alone(pair, "The BMC's certificate is not one that this source trusts.", images=0)


def test_a_bmc_that_is_at_another_task(pair: Pair) -> None:
    pair.lab_a.turn(seconds=60.0, began=True)
    pair.approved()
    held_alone(pair, "The BMC of node-a is at another task; wait for its end.", images=0)


def test_a_node_without_a_bmc(pair: Pair) -> None:
    pair.approved()
    pair.a.sources.all().delete()
    held_alone(pair, "node-a has no BMC among its sources; enter it there.", images=0)


def test_another_box_that_could_not_carry_it_all(pair: Pair) -> None:
    deployment = make_smol()
    Deployment.objects.filter(pk=deployment.pk).update(wanted=True, status="ready")
    Node.objects.filter(pk=pair.b.pk).update(status="offline")
    pair.approved(parts=pair.parts("BIOS")[:1])
    words = "node-b is offline, so too few boxes would be left."
    pair.until(lambda: str(pair.update(pair.a).reason) == words)
    NodeUpdate.objects.update(deadline_at=timezone.now())
    assert pair.held(pair.a) == f"It took longer than allowed; last seen: {words}"
    assert pair.lab_a.images == []


def test_a_node_whose_agent_is_away(pair: Pair) -> None:
    pair.approved()
    Node.objects.filter(pk=pair.a.pk).update(status="offline")
    held_alone(pair, "The agent of node-a is offline; start it.", images=0)


def test_a_node_that_does_not_come_back(pair: Pair) -> None:
    pair.lab_a.turn(needs_reset=True)
    pair.approved()
    time_runs_out(pair, "Waiting for the node to come back.")


def test_a_node_that_comes_back_with_the_old_version(pair: Pair) -> None:
    pair.lab_a.turn(needs_reset=True, reset_fails=True)
    pair.approved()
    pair.restart(pair.a, pair.lab_a)
    time_runs_out(pair, "BIOS runs 1.0.0, not 1.1.0.")


def test_a_node_that_comes_back_with_fewer_accelerators(pair: Pair) -> None:
    seen = dict(pair.a.inventory or Node.objects.get(pk=pair.a.pk).inventory or {})
    Node.objects.filter(pk=pair.a.pk).update(inventory={**seen, "accelerators": [{}, {}]})
    pair.lab_a.turn(needs_reset=True)
    pair.approved()
    pair.restart(pair.a, pair.lab_a)
    time_runs_out(pair, "0 of 2 accelerators are seen.")


OFFERS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "it is switched off": (
        {"ServiceEnabled": False},
        {},
        "The update service of node-a's BMC is switched off; switch it on there.",
    ),
    "the image is too large for it": (
        {"MaxImageSizeBytes": 100_000},
        {},
        "The BMC of node-a takes images of up to 0.1 MB, and this one has 0.3.",
    ),
    "it knows no later": (
        {
            "MultipartHttpPushUri@Redfish.OperationApplyTimeSupport": {
                "SupportedValues": ["Immediate"]
            }
        },
        {"on_reset": True},
        "The BMC of node-a cannot stage an image for later;",
    ),
}


@pytest.mark.parametrize("name", OFFERS)
def test_what_its_service_does_not_offer_is_not_asked_for(pair: Pair, name: str) -> None:
    offer, wish, words = OFFERS[name]
    pair.lab_a.turn(service=offer)
    pair.approved(**wish)
    held_alone(pair, words, images=0)


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({}, "The BMC's task stands still at 99 %"),
        ({"fault": "refuse"}, "The BMC does not take the image: HTTP 400: The BMC is locked."),
    ],
    ids=["the image does not come", "the image is refused"],
)
def test_a_bmc_that_fetches(pair: Pair, knobs: dict[str, Any], words: str, settings: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        settings.PUBLIC_URL = f"http://127.0.0.1:{mute.getsockname()[1]}"
        pair.lab_a.turn(multipart=False, **knobs)
        pair.approved()
        held_alone(pair, words, images=0)


def test_a_bmc_that_cannot_fetch(pair: Pair, settings: Any) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:9"  # Nobody is there.
    pair.lab_a.turn(multipart=False)
    pair.approved()
    held_alone(pair, "The BMC gave the update up (Exception): TransferFailed", images=0)


def in_the_store(pair: Pair) -> Path:
    from dashboard.firmware import store

    return store.path_of(pair.update(pair.a).rollout.image)


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"else")])
def test_an_image_that_was_changed_after_its_approval(
    pair: Pair, spoil: Callable[[Path], object]
) -> None:
    pair.approved()
    spoil(in_the_store(pair))
    held_alone(pair, "The file of bios.bin 1.1.0 ", images=0)
