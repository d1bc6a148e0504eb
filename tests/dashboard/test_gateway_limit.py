"""A body beyond the limit is refused while it arrives, declared or not."""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO

import pytest
from django.test import override_settings

from tests.dashboard.gateway_cast import panel

LIMIT = 1024**2
CHAT = "/v1/chat/completions"


async def endless() -> AsyncIterator[bytes]:
    """Never ends by itself: only a refusal does."""
    while True:
        yield b"x" * 65536


@pytest.mark.parametrize("declared", [True, False])
@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=LIMIT)
async def test_a_body_beyond_the_limit_is_413(declared: bool) -> None:
    async with panel() as client:
        body = BytesIO(b"x" * (LIMIT + 1)) if declared else endless()
        response = await client.post(CHAT, data=body)
        assert response.status == 413
        error = (await response.json())["error"]
    assert error["code"] == "request_too_large"
    assert "1 MiB" in error["message"]


@pytest.mark.django_db(transaction=True)
@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=LIMIT)
async def test_a_body_at_the_limit_is_read() -> None:
    async with panel("sk-tdm-nobody") as client:
        response = await client.post(CHAT, data=b"x" * LIMIT)
        assert response.status == 401


async def half() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.Event().wait()


async def test_a_body_that_stalls_is_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.gateway.limit.STALL_SECONDS", 0.3)
    async with panel() as client:
        response = await client.post(CHAT, data=half())
        assert response.status == 408
        assert (await response.json())["error"]["code"] == "request_timeout"
