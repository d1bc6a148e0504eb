"""An image that is not what it should be is refused before anybody may approve it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dashboard.choices import UpdateState
from dashboard.errors import StatusConflict
from dashboard.firmware import store
from dashboard.lifecycle import updates
from dashboard.models import FirmwareImage, FirmwarePart, Node, NodeUpdate, Rollout
from dashboard.updates.verifying import verify
from tests.dashboard.firmware_cast import VENDOR, trust
from tests.dashboard.update_cast import Pair, add_image, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "shortened"]


def refused(pair: Pair, rollout: Rollout) -> str:
    """With what words; nothing was taken out of service."""
    verify(rollout)
    rollout.refresh_from_db()
    assert rollout.finished_at
    rows = NodeUpdate.objects.filter(rollout=rollout)
    assert {(row.state, str(row.reason)) for row in rows} == {
        (UpdateState.CANCELLED, str(rollout.stopped))
    }
    with pytest.raises(StatusConflict):
        updates.approve(rollout, pair.bob, "Looks good.")
    updates.start_due()
    assert not Node.objects.filter(evacuated=True).exists()
    pair.nothing_happened_to(pair.a, pair.lab_a)
    return str(rollout.stopped)


def spoil_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (Path.unlink, "is not in the panel's store; upload it again."),
        (lambda path: path.write_bytes(b"short"), "has 5 bytes and not 300000"),
        (spoil_a_byte, "it was changed in the store. Upload it again."),
    ],
    ids=["gone", "another size", "another sum"],
)
def test_a_file_that_is_not_the_one_that_was_taken_in(
    pair: Pair, spoil: Callable[[Path], object], words: str
) -> None:
    rollout = pair.draft()
    spoil(store.path_of(rollout.image))
    assert words in refused(pair, rollout)


def signed(signature: bytes | None) -> FirmwareImage:
    return add_image("BIOS", signature=signature, signed_by=trust())


def test_a_signature_that_is_not_the_vendors(pair: Pair) -> None:
    image = signed(VENDOR.sign(b"something else"))
    words = "The signature of bios.bin 1.1.0 is not by Box Maker. Upload it again."
    assert refused(pair, pair.draft(image=image)) == words


def test_a_signature_that_is_missing(pair: Pair) -> None:
    assert "is not by Box Maker" in refused(pair, pair.draft(image=signed(None)))


def test_a_good_signature_is_good(pair: Pair) -> None:
    image = signed(b"")
    FirmwareImage.objects.update(signature=VENDOR.sign(store.path_of(image).read_bytes()))
    image.refresh_from_db()
    rollout = pair.draft(image=image)
    verify(rollout)
    assert {row.state for row in rollout.updates.all()} == {UpdateState.VERIFIED}


def test_an_image_for_another_component(pair: Pair) -> None:
    image = add_image("BIOS", fits=["BIOS of another box"])
    words = "bios.bin 1.1.0 is not made for BIOS of node-a."
    assert refused(pair, pair.draft(image=image)) == words


def test_a_component_that_cannot_be_updated(pair: Pair) -> None:
    rollout = pair.draft()
    FirmwarePart.objects.filter(node=pair.b).update(updatable=False)
    assert refused(pair, rollout) == "BIOS of node-b says that it cannot be updated."


def test_a_component_that_is_gone(pair: Pair) -> None:
    rollout = pair.draft()
    FirmwarePart.objects.filter(node=pair.b).delete()
    words = "node-b no longer lists the component redfish:BIOS."
    assert refused(pair, rollout) == words


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("1.0.0", "node-a runs 1.0.0 already."),
        ("0.9.9", "node-a runs 1.0.0, and 0.9.9 is older. Allow an older version"),
        ("1.0.0-rc2", "cannot be told from the names. Allow an older version if you know it."),
    ],
)
def test_a_version_that_is_no_step_forward(pair: Pair, version: str, words: str) -> None:
    assert words in refused(pair, pair.draft(image=add_image("BIOS", version)))
