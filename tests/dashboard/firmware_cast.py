"""The cast of firmware's tests: a store of its own, parts of boxes, and images to upload."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from dashboard.firmware import store
from dashboard.firmware.signatures import fingerprint
from dashboard.models import FirmwareKey, FirmwarePart, Node

CONTENT = b"a new BMC " * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
VENDOR = Ed25519PrivateKey.generate()


@pytest.fixture
def firmware(settings: Any, tmp_path: Path) -> Path:
    """The folder of a store that nobody else uses."""
    settings.STATE_DIR = tmp_path
    return store.folder()


@pytest.fixture
def operator(db: None) -> Client:
    """May do everything. No password: hashing one takes longer than most tests."""
    client = Client()
    client.force_login(User.objects.create_superuser("ada"))
    return client


@pytest.fixture
def viewer(db: None) -> Client:
    """May look."""
    client = Client()
    client.force_login(User.objects.create_user("lin"))
    return client


def pem() -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return VENDOR.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def trust() -> FirmwareKey:
    return FirmwareKey.objects.create(
        name="Box Maker", pem=pem(), fingerprint=fingerprint(pem()), by="ada"
    )


def part(node: Node, name: str, active: str = "1.0", **changes: Any) -> FirmwarePart:
    fields = {
        "key": f"redfish:{name}",
        "component": "bmc",
        "channel": "redfish",
        "name": name,
        "active": active,
        "read_at": timezone.now(),
        **changes,
    }
    return FirmwarePart.objects.create(node=node, **fields)


def upload(content: bytes = CONTENT, **changes: Any) -> dict[str, Any]:
    """A filled-in form."""
    return {
        "file": SimpleUploadedFile("bmc-2.0.bin", content),
        "sha256": SHA256,
        "signed": "no",
        "component": "bmc",
        "fits": "BMC*\n",
        "version": "2.0",
        **changes,
    }


def left_in(folder: Path) -> set[str]:
    """Files that lie there, unfinished ones included."""
    return {path.name for path in folder.rglob("*") if path.is_file()}
