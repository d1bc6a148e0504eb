"""A database that is away for a moment fails no request."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.db import OperationalError

from dashboard.gateway import directory, hold, keys, patience
from dashboard.gateway.routes import find_targets
from dashboard.gateway.upstream import Broken
from tests.dashboard.fake_head import FakeHead, running
from tests.dashboard.gateway_cast import panel, stage

pytestmark = pytest.mark.django_db(transaction=True)
CHAT = "/v1/chat/completions"
ASK = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}


def away(times: int, work: Callable[..., Any]) -> Callable[..., Any]:
    """It fails so many times before it works again."""
    left = [times]

    def failing(*args: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise OperationalError("the server closed the connection")
        return work(*args)

    return failing


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_trusted", {})
    monkeypatch.setattr(directory, "_known", {})
    monkeypatch.setattr(patience, "PAUSE_SECONDS", 0.01)


async def test_a_request_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(FakeHead()) as head:
        secret = await database_sync_to_async(stage)(head)
        monkeypatch.setattr(keys, "authenticate", away(3, keys.authenticate))
        monkeypatch.setattr(directory, "find_targets", away(3, find_targets))
        async with panel(secret) as client:
            response = await client.post(CHAT, json=ASK)
            assert response.status == 200


async def test_a_search_ends_although_nobody_is_known_and_no_database_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hold, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(directory, "find_targets", away(10_000, find_targets))
    asked = hold.Request(route="smol", path=CHAT, body=b"{}", stream=True, id="req_1")
    with pytest.raises(Broken):
        async with asyncio.timeout(10):
            await hold.Hold(asked).find([])


async def test_one_that_stays_away_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.1)
    async with running(FakeHead()) as head:
        secret = await database_sync_to_async(stage)(head)
        monkeypatch.setattr(keys, "authenticate", away(10_000, keys.authenticate))
        async with panel(secret) as client:
            response = await client.post(CHAT, json=ASK)
            assert response.status == 503
            assert (await response.json())["error"]["code"] == "database_away"
