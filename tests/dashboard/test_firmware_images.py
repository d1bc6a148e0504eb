"""An image is taken in when it is what its person means, and leaves nothing when it is not."""

import hashlib
import struct
import uuid
import zlib
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from dashboard.firmware import store
from dashboard.firmware.arrival import Arrival, forget_strays
from dashboard.models import AuditEntry, FirmwareFetch, FirmwareImage, FirmwareKey, Rollout
from tests.dashboard.firmware_cast import (
    CONTENT,
    SHA256,
    VENDOR,
    firmware,
    left_in,
    operator,
    part,
    pem,
    trust,
    upload,
    viewer,
)
from tests.dashboard.pages_cast import body, make_node

__all__ = ["firmware", "operator", "viewer"]
pytestmark = pytest.mark.django_db
NEW = "/firmware/images/new/"
Space = namedtuple("Space", ["total", "used", "free"])


def refused(client: Client, folder: Path, data: dict[str, Any]) -> str:
    answer = client.post(NEW, data)
    assert answer.status_code == 422
    assert left_in(folder) == set()
    assert not FirmwareImage.objects.exists()
    errors = answer.context["form"].errors
    return " ".join(str(error) for listed in errors.values() for error in listed)


def test_the_right_file_is_in_the_store(operator: Client, firmware: Path) -> None:
    answer = operator.post(NEW, upload(sha256=f"SHA256:{SHA256.upper()}  bmc-2.0.bin"))
    image = FirmwareImage.objects.get()
    assert answer["Location"] == f"/firmware/images/{image.pk}/"
    assert store.path_of(image).read_bytes() == CONTENT
    assert store.path_of(image).stat().st_mode & 0o077 == 0
    assert (image.size, image.sha256, image.fits) == (len(CONTENT), SHA256, ["BMC*"])
    assert AuditEntry.objects.get(action="firmware.image.add").actor == "ada"
    assert "the vendor gives no signature" in body(operator, answer["Location"])


def test_another_file_is_refused_with_both_sums(operator: Client, firmware: Path) -> None:
    words = refused(operator, firmware, upload(sha256="a" * 64))
    assert SHA256 in words
    assert "a" * 64 in words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sha256": "abc"}, "64 hexadecimal digits"),
        ({"fits": " , \n"}, "1 to 50 names"),
        ({"component": "kernel"}, "not one of the available choices"),
        ({"version": ""}, "Enter the version"),
        ({"signed": "yes"}, "Choose the signature file"),
        ({"content": b""}, "The file is empty"),
    ],
)
def test_what_is_missing_or_wrong_is_said(
    operator: Client, firmware: Path, changes: dict[str, Any], words: str
) -> None:
    assert words in refused(operator, firmware, upload(**changes))


def test_a_file_beyond_the_limit_is_refused(
    operator: Client, firmware: Path, settings: Any
) -> None:
    settings.FIRMWARE_MOST_BYTES = 1000
    assert "larger than" in refused(operator, firmware, upload())


def test_a_full_disk_is_noticed_before(
    operator: Client, firmware: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Space(1, 1, 10)
    monkeypatch.setattr("dashboard.firmware.arrival.shutil.disk_usage", lambda _path: full)
    assert "has no room" in refused(operator, firmware, upload())


def test_the_same_file_twice_is_one_image(operator: Client, firmware: Path) -> None:
    operator.post(NEW, upload())
    answer = operator.post(NEW, upload())
    assert "in the store already" in answer.content.decode()
    assert left_in(firmware) == {SHA256}


def test_a_trusted_signature_is_shown(operator: Client, firmware: Path) -> None:
    key = trust()
    file = SimpleUploadedFile("bmc.sig", VENDOR.sign(CONTENT))
    operator.post(NEW, upload(signed="yes", signature=file))
    image = FirmwareImage.objects.get()
    assert image.signed_by == key
    assert "signed by Box Maker" in body(operator, f"/firmware/images/{image.pk}/")


@pytest.mark.parametrize(
    "signature",
    [VENDOR.sign(b"another file"), b"rubbish", b"x" * 70_000],
    ids=["of another file", "rubbish", "too long"],
)
def test_a_bad_signature_is_refused(operator: Client, firmware: Path, signature: bytes) -> None:
    trust()
    file = SimpleUploadedFile("bmc.sig", signature)
    words = refused(operator, firmware, upload(signed="yes", signature=file))
    assert "signature" in words


def test_a_signature_by_nobody_trusted_is_refused(operator: Client, firmware: Path) -> None:
    file = SimpleUploadedFile("bmc.sig", VENDOR.sign(CONTENT))
    assert "none of the vendor keys" in refused(
        operator, firmware, upload(signed="yes", signature=file)
    )


def test_who_may_only_look_uploads_nothing(viewer: Client, firmware: Path) -> None:
    assert viewer.post(NEW, upload()).status_code == 403
    assert left_in(firmware) == set()
    assert "Upload an image" not in body(viewer, "/firmware/images/")


def test_a_form_of_another_site_is_refused(operator: Client, firmware: Path) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies
    assert strict.post(NEW, upload()).status_code == 403
    assert left_in(firmware) == set()


def test_an_unused_image_is_removed(operator: Client, firmware: Path) -> None:
    operator.post(NEW, upload())
    image = FirmwareImage.objects.get()
    store.one_use_path(image, None)
    rollout = Rollout.objects.create(image=image, token="t", reason="r", by="ada")
    operator.post(f"/firmware/images/{image.pk}/remove/")
    assert FirmwareImage.objects.exists()
    rollout.delete()
    path = store.path_of(image)
    answer = operator.post(f"/firmware/images/{image.pk}/remove/")
    assert answer["Location"] == "/firmware/images/"
    assert not FirmwareImage.objects.exists()
    assert not FirmwareFetch.objects.exists()
    assert AuditEntry.objects.filter(action="firmware.image.remove").exists()
    assert path.exists()  # Until the transaction that this test runs in would be committed.


def test_what_fwupd_offers_becomes_an_image(operator: Client, firmware: Path) -> None:
    details = {
        "offer sha256": SHA256,
        "offer address": "https://lvfs.example/ec.cab",
        "offer file": "ec.cab",
        "offer description": "<p>Fixes <em>the fan</em>.</p>",
        "maker": "Box Maker",
    }
    offered = part(
        make_node("box-1"),
        "Embedded Controller",
        "1.0",
        component="ec",
        channel="fwupd",
        key="fwupd:a",
        model="guid",
        available="1.0.4",
        details=details,
    )
    url = f"/firmware/nodes/box-1/offers/{offered.pk}/"
    first, again = operator.post(url), operator.post(url)
    assert first["Location"] == again["Location"]
    image = FirmwareImage.objects.get()
    assert (image.source, image.version, image.fits) == ("lvfs", "1.0.4", ["guid"])
    assert image.notes == "Fixes the fan."
    assert not store.is_here(image)
    text = body(operator, first["Location"])
    assert "fwupd checks LVFS" in text
    assert "the panel does not have it" in text
    operator.post(NEW, upload(component="ec", fits="guid", version="1.0.4"))
    assert store.is_here(FirmwareImage.objects.get())


def test_only_administrators_say_which_keys_count(operator: Client, viewer: Client) -> None:
    data = {"name": "Maker", "vendor": "", "pem": pem()}
    assert viewer.post("/firmware/keys/", data).status_code == 403
    assert operator.post("/firmware/keys/", data).status_code == 302
    key = FirmwareKey.objects.get()
    assert key.fingerprint in body(viewer, "/firmware/keys/")
    again = operator.post("/firmware/keys/", {**data, "name": "x"})
    assert "is here already" in again.content.decode()
    assert operator.post("/firmware/keys/", {**data, "pem": "hello"}).status_code == 422
    assert viewer.post(f"/firmware/keys/{key.pk}/remove/").status_code == 403
    operator.post(f"/firmware/keys/{key.pk}/remove/")
    assert not FirmwareKey.objects.exists()
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"firmware.key.add", "firmware.key.remove"} <= actions


def pldm(revision: int = 1, damage: int = 0) -> bytes:
    """A package of two devices and one component."""
    identifier = uuid.UUID(
        "f018878c-cb7d-4943-9800-a02f059aca02"
        if revision == 1
        else "1244d264-8d7d-4718-a030-fc8a56587d5a"
    )
    version, component = b"HGX-1.5", b"24.10.1"
    record = struct.pack("<H", 12) + b"\1" * 10
    areas = b"\2" + record * 2 + (b"\0" if revision == 2 else b"")
    described = struct.pack("<HHIHHIIBB", 10, 0x0A, 0, 0, 1, 200, 5, 1, len(component)) + component
    rest = (
        b"\0" * 13
        + struct.pack("<HBB", 8, 1, len(version))
        + version
        + areas
        + struct.pack("<H", 1)
        + described
    )
    size = 16 + 1 + 2 + len(rest) + 4
    head = identifier.bytes + struct.pack("<BH", revision, size) + rest
    return head + struct.pack("<I", zlib.crc32(head) ^ damage) + b"firmware"


@pytest.mark.parametrize("revision", [1, 2])
def test_a_pldm_package_tells_its_version(operator: Client, firmware: Path, revision: int) -> None:
    content = pldm(revision)
    file = SimpleUploadedFile("hgx.fwpkg", content)
    sha256 = hashlib.sha256(content).hexdigest()
    operator.post(NEW, upload(file=file, sha256=sha256, version=""))
    image = FirmwareImage.objects.get()
    assert image.version == "HGX-1.5"
    assert image.notes == "PLDM HGX-1.5 (0x000a: 24.10.1)"


@pytest.mark.parametrize("content", [pldm(damage=1), pldm()[:40], pldm()[:16], b"\0" * 100])
def test_a_broken_header_tells_nothing(operator: Client, firmware: Path, content: bytes) -> None:
    file = SimpleUploadedFile("hgx.fwpkg", content)
    sha256 = hashlib.sha256(content).hexdigest()
    words = refused(operator, firmware, upload(file=file, sha256=sha256, version=""))
    assert "the file does not tell it" in words


def test_what_uploads_left_is_cleared(firmware: Path) -> None:
    stray = Arrival()
    stray.write(b"half")
    forget_strays(timezone.now().timestamp() - 60)
    assert left_in(firmware) == {stray.path.name}
    forget_strays(timezone.now().timestamp() + 60)
    assert left_in(firmware) == set()
    stray.discard()
