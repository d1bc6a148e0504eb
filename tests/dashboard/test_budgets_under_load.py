"""50 clients over two web processes, and Valkey loses its memory in the middle: a budget of
requests and one of tokens end where they should."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.db import connection

from dashboard.embedded import EmbeddedValkey
from dashboard.gateway.budgets import told
from dashboard.gateway.budgets.limits import Limit
from dashboard.models import ApiRequest, Budget
from tests.dashboard.fake_head import FakeHead, running
from tests.dashboard.gateway_cast import make_deployment, make_key, make_replica, make_user

pytestmark = pytest.mark.django_db(transaction=True)
CLIENTS, MOST, MIDDLE, SECONDS = 50, 150, 60, 40.0
ASK = {"model": "smol", "max_tokens": 3, "messages": [{"role": "user", "content": "Hi"}]}


class CountingHead(FakeHead):
    async def _whole(self, request: web.Request) -> web.Response:
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}}
        return web.json_response({"choices": [choice], "usage": usage})


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[EmbeddedValkey]:
    server = EmbeddedValkey(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def processes(valkey: EmbeddedValkey) -> Iterator[list[str]]:
    """Two web processes of one panel."""
    name = connection.settings_dict["NAME"]
    parts = urlsplit(os.environ["DATABASE_URL"])
    query = f"?{parts.query}" if parts.query else ""
    env = os.environ | {
        "DATABASE_URL": f"{parts.scheme}://{parts.netloc}/{name}{query}",
        "REDIS_URL": valkey.url,
    }
    started, urls = [], []
    for _each in range(2):
        listener = socket.create_server(("127.0.0.1", 0))
        words = ["--fd", str(listener.fileno()), "--log-level", "warning"]
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "uvicorn", "dashboard.asgi:application", *words],
                env=env,
                pass_fds=[listener.fileno()],
            )
        )
        urls.append(f"http://127.0.0.1:{listener.getsockname()[1]}")
        listener.close()
    yield urls
    for process in started:
        process.terminate()
    for process in started:
        process.wait(20)


async def test_a_budget_is_met_exactly(valkey: EmbeddedValkey, processes: list[str]) -> None:
    answered: list[int] = []
    middle = asyncio.Event()

    async def client(http: aiohttp.ClientSession, url: str) -> dict[str, Any]:
        while True:
            async with http.post(f"{url}/v1/chat/completions", json=ASK) as response:
                body = await response.json()
                if response.status == 200:
                    answered.append(1)
                    if len(answered) >= MIDDLE:
                        middle.set()
                    continue
                code = body["error"]["code"]
                if code == "budget_exceeded":
                    assert 0 < int(response.headers["Retry-After"]) <= 86_401
                    return dict(body["error"])
                assert code in ("budget_in_use", "budget_away", "overloaded"), body

    async with running(CountingHead()) as head:
        secret, user = await sync_to_async(_stage)(head)
        headers = {"Authorization": f"Bearer {secret}"}
        limits = aiohttp.TCPConnector(limit=0)
        async with (
            asyncio.timeout(SECONDS),
            aiohttp.ClientSession(headers=headers, connector=limits) as http,
        ):
            tasks = [
                asyncio.create_task(client(http, processes[index % 2])) for index in range(CLIENTS)
            ]
            await middle.wait()
            assert valkey.process is not None
            valkey.process.kill()
            await asyncio.to_thread(valkey.process.wait)
            await asyncio.to_thread(valkey.start)
            errors = await asyncio.gather(*tasks)
    assert {error["param"] for error in errors} == {"user.requests_day"}
    assert len(answered) == len(head.bodies) == MOST
    async with asyncio.timeout(10):
        while await ApiRequest.objects.filter(charged_tokens=10).acount() < MOST:
            await asyncio.sleep(0.05)
    assert await _used(user, "requests_day") == MOST
    assert await _used(user, "tokens_day") == 10 * MOST


def _stage(head: FakeHead) -> tuple[str, int]:
    user = make_user()
    _key, secret = make_key(user)
    make_replica(make_deployment(), head.port)
    Budget.objects.create(user=user, requests_day=MOST, tokens_day=1_000_000)
    return secret, user.pk


async def _used(user: int, kind: str) -> int:
    row = await ApiRequest.objects.afirst()
    assert row is not None
    return await sync_to_async(told.used)(Limit(f"user:{user}", kind, 0), row.begun)
