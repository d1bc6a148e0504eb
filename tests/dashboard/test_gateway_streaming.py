"""Streams pass through untouched, and whoever hangs up stops the engine."""

import asyncio
import gc
import json
import threading
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.middleware.clickjacking import XFrameOptionsMiddleware

from dashboard.gateway import hold
from tests.dashboard.fake_head import FakeHead, running
from tests.dashboard.gateway_cast import panel, stage

pytestmark = pytest.mark.django_db(transaction=True)
ASK = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}


def payloads(text: str) -> list[Any]:
    lines = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


async def test_every_chunk_arrives_with_usage_and_done() -> None:
    async with running(FakeHead()) as head:
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client:
            body = {**ASK, "stream": True, "stream_options": {"include_usage": True}}
            response = await client.post("/v1/chat/completions", json=body)
            events = payloads(await response.text())
    assert response.status == 200
    assert response.content_type == "text/event-stream"
    assert "Set-Cookie" not in response.headers
    words = [e["choices"][0]["delta"].get("content", "") for e in events[:-1] if e["choices"]]
    assert "".join(words) == "Hello wörld"
    assert events[-2]["usage"]["prompt_tokens"] == 7
    assert events[-1] == "[DONE]"


async def test_text_is_sent_on_before_the_answer_is_complete() -> None:
    async with running(FakeHead(hold_at=1)) as head:
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client:
            response = await client.post("/v1/chat/completions", json={**ASK, "stream": True})
            async with asyncio.timeout(5):
                first = await response.content.readuntil(b"\n\n")
            assert "Hel" in first.decode()
            head.release.set()
            rest = await response.text()
    assert rest.endswith("data: [DONE]\n\n")


async def test_hanging_up_on_a_stream_aborts_it_at_the_head() -> None:
    async with running(FakeHead(hold_at=1)) as head:
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client:
            response = await client.post("/v1/chat/completions", json={**ASK, "stream": True})
            await head.wait(head.held)
            response.close()
            await head.wait(head.aborted)


async def test_hanging_up_while_middleware_have_the_response_aborts_it_at_the_head(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Django drops that response without closing it."""
    reached, loop = asyncio.Event(), asyncio.get_running_loop()
    hung_up = threading.Event()
    listen = ASGIHandler.listen_for_disconnect

    async def listening(self: ASGIHandler, receive: Any) -> None:
        try:
            await listen(self, receive)
        finally:
            # Django waits for its thread with the loop stopped, so a thread has to let it go.
            threading.Timer(0.05, hung_up.set).start()

    def slow(_self: object, _request: object, response: Any) -> Any:
        loop.call_soon_threadsafe(reached.set)
        hung_up.wait(10)
        return response

    monkeypatch.setattr(ASGIHandler, "listen_for_disconnect", listening)
    monkeypatch.setattr(XFrameOptionsMiddleware, "process_response", slow)
    gc.disable()  # it would close what is forgotten, some time
    try:
        async with running(FakeHead(hold_at=0)) as head:
            secret = await database_sync_to_async(stage)(head)
            async with panel(secret) as client:
                body = {**ASK, "stream": True}
                asking = asyncio.create_task(client.post("/v1/chat/completions", json=body))
                await head.wait(reached)
                asking.cancel()
                await head.wait(head.aborted)
    finally:
        gc.enable()


async def test_hanging_up_before_a_whole_answer_aborts_it_at_the_head() -> None:
    async with running(FakeHead(hold_at=0)) as head:
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client:
            asking = asyncio.create_task(client.post("/v1/chat/completions", json=ASK))
            await head.wait(head.held)
            asking.cancel()
            await head.wait(head.aborted)


async def test_a_head_that_dies_mid_stream_ends_it_with_an_error() -> None:
    async with running(FakeHead(dies=True, hold_at=2)) as head:
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client:
            response = await client.post("/v1/chat/completions", json={**ASK, "stream": True})
            async with asyncio.timeout(10):
                first = await response.content.readuntil(b"\n\n")
                await head.wait(head.held)
                head.release.set()
                events = payloads(await response.text())
    assert "Hel" in first.decode()
    assert events[-1] == "[DONE]"
    assert events[-2]["error"]["code"] == "upstream_failed"
    assert "smol stopped answering" in events[-2]["error"]["message"]


async def test_a_stream_that_ends_without_done_ends_with_an_error() -> None:
    async with running(FakeHead(ends_early=True)) as head:
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client:
            response = await client.post("/v1/chat/completions", json={**ASK, "stream": True})
            events = payloads(await response.text())
    assert events[0]["choices"][0]["delta"]["content"] == "Hel"
    assert events[-1] == "[DONE]"
    assert events[-2]["error"]["code"] == "upstream_failed"


async def test_a_head_that_does_not_even_begin_to_answer_is_502(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when the link to it breaks just then: no connection ends."""
    monkeypatch.setattr(hold, "WAIT_SECONDS", 0.3)
    async with running(FakeHead(hold_at=0)) as head:
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client, asyncio.timeout(10):
            response = await client.post("/v1/chat/completions", json=ASK)
            assert response.status == 502


async def test_a_head_that_dies_before_a_whole_answer_is_502(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hold, "WAIT_SECONDS", 0.3)
    async with running(FakeHead(dies=True, hold_at=0)) as head:
        head.release.set()
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client:
            response = await client.post("/v1/chat/completions", json=ASK)
            assert response.status == 502
            assert response.headers["Retry-After"] == "5"


async def test_what_is_asked_reaches_the_head_unchanged() -> None:
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}}}}
    asked = {
        **ASK,
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": ["漢"]}}},
        "logprobs": True,
        "top_logprobs": 3,
        "logit_bias": {"5": -100},
        "chat_template_kwargs": {"enable_thinking": False},
        "something_new": [1, None, 2.5],
    }
    async with running(FakeHead()) as head:
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client:
            response = await client.post("/v1/chat/completions", json=asked)
            assert response.status == 200
    assert head.bodies == [asked]
