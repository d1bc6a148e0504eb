"""A vendor's bundle is taken in whole or not at all, whatever else its archive holds."""

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dashboard.models import FirmwareImage
from tests.dashboard.firmware_cast import (
    CONTENT,
    SHA256,
    VENDOR,
    firmware,
    left_in,
    operator,
    trust,
)

__all__ = ["firmware", "operator"]
pytestmark = pytest.mark.django_db
URL = "/firmware/images/bundle/"
OTHER = b"a new NIC" * 100
Pack = Callable[[Mapping[str, bytes]], bytes]


def zipped(files: Mapping[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


def tarred(files: Mapping[str, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


def linked(files: Mapping[str, bytes]) -> bytes:
    """The image is a link to a file of the panel's machine."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            if name == "bmc.bin":
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                archive.addfile(info)
                continue
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "file": "bmc.bin",
        "sha256": SHA256,
        "size": len(CONTENT),
        "component": "bmc",
        "fits": ["BMC"],
        "version": "2.0",
        **changes,
    }


def manifest(*entries: dict[str, Any], **changes: Any) -> bytes:
    images = list(entries) or [entry()]
    return json.dumps(
        {"format": "tandem-bundle-1", "vendor": "Box Maker", "images": images, **changes}
    ).encode()


def send(client: Client, content: bytes, sha256: str = "") -> Any:
    file = SimpleUploadedFile("bundle.zip", content)
    return client.post(URL, {"file": file, "sha256": sha256 or hashlib.sha256(content).hexdigest()})


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_every_image_of_it_is_taken_in(operator: Client, firmware: Path, pack: Pack) -> None:
    key = trust()
    other = hashlib.sha256(OTHER).hexdigest()
    nic = entry(file="x/nic.bin", sha256=other, size=len(OTHER), component="nic", reversible=False)
    files = {
        "tandem-bundle.json": manifest(entry(signature="bmc.sig"), nic),
        "bmc.bin": CONTENT,
        "bmc.sig": VENDOR.sign(CONTENT),
        "x/nic.bin": OTHER,
        "../../../etc/cron.d/evil": b"* * * * *",
        "/absolute": b"too",
    }
    assert send(operator, pack(files))["Location"] == "/firmware/images/"
    assert left_in(firmware) == {SHA256, other}
    first = FirmwareImage.objects.get(sha256=SHA256)
    second = FirmwareImage.objects.get(sha256=other)
    assert (first.signed_by, first.vendor, first.source) == (key, "Box Maker", "bundle")
    assert (second.signed_by, second.name, second.reversible) == (None, "nic.bin", False)
    assert send(operator, pack(files)).status_code == 302
    assert FirmwareImage.objects.count() == 2


GOOD = {"tandem-bundle.json": manifest(), "bmc.bin": CONTENT}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not an archive", "neither a zip nor"),
        (b"PK\x05\x06" + b"\0" * 18, "no tandem-bundle.json"),
        (zipped(GOOD)[:-30], "neither a zip nor"),
        (zipped({"bmc.bin": CONTENT}), "no tandem-bundle.json"),
        (zipped({**GOOD, "tandem-bundle.json": b"{"}), "cannot be read"),
        (zipped({**GOOD, "tandem-bundle.json": b" " * 300_000}), "larger than"),
        (zipped({**GOOD, "tandem-bundle.json": manifest(format="2")}), "cannot be read"),
        (zipped({**GOOD, "tandem-bundle.json": manifest(extra=1)}), "cannot be read"),
        (zipped({**GOOD, "tandem-bundle.json": manifest(*[entry()] * 65)}), "65 images"),
        (zipped({**GOOD, "tandem-bundle.json": manifest(entry(component="moon"))}), "component"),
        (zipped({**GOOD, "tandem-bundle.json": manifest(entry(sha256="../x"))}), "sha256"),
        (zipped({**GOOD, "tandem-bundle.json": manifest(entry(fits=[]))}), "fits"),
        (zipped({**GOOD, "tandem-bundle.json": manifest(entry(file="../b"))}), "not in it"),
        (zipped({**GOOD, "tandem-bundle.json": manifest(entry(signature="no"))}), "not in it"),
        (zipped({**GOOD, "bmc.bin": b"another"}), "not the one you mean"),
        (zipped({**GOOD, "bmc.bin": b"\0" * 30_000_000}), "larger than the manifest says"),
        (linked(GOOD), "not in it as an ordinary file"),
        (tarred({str(number): b"" for number in range(5000)}), "too many files"),
    ],
)
def test_a_bundle_that_is_not_right_leaves_nothing(
    operator: Client, firmware: Path, content: bytes, words: str
) -> None:
    answer = send(operator, content)
    assert answer.status_code == 422
    assert words in str(answer.context["form"].non_field_errors())
    assert left_in(firmware) == set()
    assert not FirmwareImage.objects.exists()


def test_one_bad_image_keeps_the_good_ones_out(operator: Client, firmware: Path) -> None:
    bad = entry(file="nic.bin", sha256="0" * 64, size=len(OTHER))
    files = {**GOOD, "tandem-bundle.json": manifest(entry(), bad), "nic.bin": OTHER}
    assert send(operator, zipped(files)).status_code == 422
    assert left_in(firmware) == set()
    assert not FirmwareImage.objects.exists()


def test_a_bad_signature_keeps_the_bundle_out(operator: Client, firmware: Path) -> None:
    trust()
    files = {
        **GOOD,
        "tandem-bundle.json": manifest(entry(signature="bmc.sig")),
        "bmc.sig": VENDOR.sign(OTHER),
    }
    answer = send(operator, zipped(files))
    assert "none of the vendor keys" in str(answer.context["form"].non_field_errors())
    assert left_in(firmware) == set()


def test_the_bundle_itself_must_be_the_one_that_is_meant(operator: Client, firmware: Path) -> None:
    answer = send(operator, zipped(GOOD), "1" * 64)
    assert "not the one you mean" in str(answer.context["form"].non_field_errors())
    assert left_in(firmware) == set()
