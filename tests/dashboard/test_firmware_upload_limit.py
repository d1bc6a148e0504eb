"""A body as large as an image is taken of who is signed in, and of nobody else."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import FormData
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client, override_settings

from dashboard.models import FirmwareImage
from tests.dashboard.firmware_cast import CONTENT, SHA256, firmware, left_in
from tests.dashboard.gateway_cast import panel

__all__ = ["firmware"]
pytestmark = pytest.mark.django_db(transaction=True)
NEW = "/firmware/images/new/"
USUAL = 4096


def cookies_of(name: str) -> dict[str, str]:
    client = Client()
    client.force_login(User.objects.create_superuser(name))
    client.get(NEW)
    return {key: morsel.value for key, morsel in client.cookies.items()}


def form(**fields: str) -> FormData:
    data = FormData()
    for name, value in fields.items():
        data.add_field(name, value)
    data.add_field("file", CONTENT, filename="bmc.bin")
    return data


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=USUAL)
async def test_a_stranger_sends_no_image(firmware: Path) -> None:
    async with panel() as client:
        for headers in ({}, {"Cookie": f"{django_settings.SESSION_COOKIE_NAME}=made-up"}):
            response = await client.post(NEW, data=form(), headers=headers)
            assert response.status == 413
    assert left_in(firmware) == set()


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=USUAL)
async def test_somebody_signed_in_does(firmware: Path, settings: Any) -> None:
    cookies = await sync_to_async(cookies_of)("ada")
    token = cookies[django_settings.CSRF_COOKIE_NAME]
    header = "; ".join(f"{name}={value}" for name, value in cookies.items())
    fields = {"csrfmiddlewaretoken": token, "sha256": SHA256, "signed": "no"}
    fields |= {"component": "bmc", "fits": "BMC", "version": "2.0"}
    async with panel() as client:
        headers = {"Cookie": header}
        elsewhere = await client.post("/models/", data=form(**fields), headers=headers)
        assert elsewhere.status == 413
        settings.FIRMWARE_MOST_BYTES = 1000
        large = await client.post(NEW, data=form(**fields), headers=headers)
        assert large.status == 413
        settings.FIRMWARE_MOST_BYTES = 1 << 20
        taken = await client.post(NEW, data=form(**fields), headers=headers, allow_redirects=False)
        assert taken.status == 302
    assert await FirmwareImage.objects.acount() == 1
    assert left_in(firmware) == {SHA256}
