"""What archives, signatures and BMCs hold by mistake or malice ends in words, not in an error."""

import errno
import io
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from dashboard.firmware.cms import signers_of
from dashboard.firmware.der import DerError
from dashboard.models import FirmwareImage, Node, NodeUpdate
from dashboard.sentences import Sentence
from dashboard.updates import leaving, resets
from dashboard.updates.base import UpdateFailed
from dashboard.updates.redfish import Reply, UpdateClient, _task
from tests.dashboard.firmware_cast import CONTENT, SHA256, firmware, left_in, operator
from tests.dashboard.test_firmware_bundles import entry, manifest, send, zipped

__all__ = ["firmware", "operator"]
pytestmark = pytest.mark.django_db
FILES = {"tandem-bundle.json": manifest(), "bmc.bin": CONTENT}


def lzma() -> bytes:
    """Unpacking it may take four gigabytes of memory: its dictionary says how much."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    return held.getvalue()


def broken_off() -> bytes:
    """The index is whole, and points to where only half a header is."""
    content = bytearray(zipped(FILES))
    index = content.rindex(b"PK\x01\x02", 0, content.rindex(b"PK\x01\x02"))
    end = len(content)
    content[index + 42 : index + 46] = struct.pack("<I", end - 10)
    return bytes(content)


def with_a_null() -> bytes:
    return zipped({**FILES, "tandem-bundle.json": manifest(entry(fits=["B\x00MC"]))})


@pytest.mark.parametrize("make", [lzma, broken_off])
def test_a_bundle_that_is_packed_oddly_is_refused(
    operator: Client, firmware: Path, make: Callable[[], bytes]
) -> None:
    assert send(operator, make()).status_code == 422
    assert not FirmwareImage.objects.exists()
    assert left_in(firmware) == set()


def test_null_characters_of_a_manifest_are_left_out(operator: Client, firmware: Path) -> None:
    assert send(operator, with_a_null()).status_code == 302
    assert FirmwareImage.objects.get(sha256=SHA256).fits == ["BMC"]


def test_a_disk_that_is_full_at_the_end_of_a_bundle_leaves_nothing(
    operator: Client, firmware: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    content, real = zipped(FILES), os.fsync
    calls: list[int] = []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        (real if len(calls) == 1 else full)(descriptor)  # The bundle arrives, its image does not.

    monkeypatch.setattr(os, "fsync", fsync)
    answer = send(operator, content)
    assert (answer.status_code, "No space left" in answer.content.decode()) == (422, True)
    assert not FirmwareImage.objects.exists()
    assert left_in(firmware) == set()


def test_an_identifier_of_thousands_of_digits_is_no_signature() -> None:
    name = b"\x81" * 20_000 + b"\x01"
    oid = b"\x06\x82" + struct.pack(">H", len(name)) + name
    rest = b"\x05\x00"
    whole = b"\x30\x82" + struct.pack(">H", len(oid + rest)) + oid + rest
    with pytest.raises(DerError):
        signers_of(whole)


class Odd(UpdateClient):
    """Answers everything with one document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def get(self, path: str) -> Reply:
        return Reply(200, {}, self.document)


ODD: list[Any] = [{}, 5, "abc", None, [5], [None], [{"@odata.id": 5}], [{"@odata.id": "@evil/x"}]]


@pytest.mark.parametrize("members", ODD, ids=json.dumps)
def test_a_bmc_that_lists_nonsense_lists_nothing(members: Any) -> None:
    bmc = Odd({"Members": members, "PowerSupplies": members})
    leaving._check_power(NodeUpdate(node=Node(name="box-1")), bmc)
    assert bmc.tasks() == []
    with pytest.raises(UpdateFailed, match="lists nothing"):
        resets._member(bmc, "/redfish/v1/Systems", "https://bmc")


@pytest.mark.parametrize("percent", [float("nan"), float("inf"), -1, 10**400, "50", None, 101])
def test_a_percentage_that_is_none_is_not_told(percent: Any) -> None:
    assert _task("Running", {"PercentComplete": percent}).percent is None


@pytest.mark.parametrize(
    "words", ['{"message": 5', '{"message":"a"}', '{"message":', "100 %(x)s %"]
)
def test_words_of_a_device_are_kept_as_they_are(words: str) -> None:
    node = Node.objects.create(name="box-1", reason=Sentence(words))
    node.refresh_from_db()
    assert str(node.reason) == words


def test_words_of_a_device_lose_what_the_database_does_not_take() -> None:
    node = Node.objects.create(name="box-1", reason=Sentence("a\x00b\ud800c"))
    node.refresh_from_db()
    assert str(node.reason) == "abc"
