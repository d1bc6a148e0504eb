"""A head without an engine: the same HTTP, with an answer that a test can hold, cut or refuse."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "launch-secret"
WAIT_SECONDS = 10.0


@dataclass
class FakeHead:
    """Streams `words`. It waits at `hold_at` until released, and then dies with `dies`."""

    words: list[str] = field(default_factory=lambda: ["Hel", "lo ", "wörld"])
    thoughts: tuple[str, ...] = ()
    """Reasoning that comes before the words of a streamed answer."""
    hold_at: int | None = None
    dies: bool = False
    ends_early: bool = False
    refusal: tuple[int, dict[str, Any]] | None = None
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    aborted: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def wait(self, event: asyncio.Event) -> None:
        await asyncio.wait_for(event.wait(), WAIT_SECONDS)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"error": {"message": "wrong token"}}, status=401)
        body = await request.json()
        self.bodies.append(body)
        if self.refusal is not None:
            status, payload = self.refusal
            return web.json_response(payload, status=status)
        try:
            if body.get("stream"):
                return await self._stream(request, body)
            return await self._whole(request)
        except (asyncio.CancelledError, ConnectionError):
            self.aborted.set()
            raise

    async def _pause(self, index: int, request: web.Request) -> None:
        if index != self.hold_at:
            return
        self.held.set()
        await asyncio.wait_for(self.release.wait(), WAIT_SECONDS)
        if self.dies:
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError

    async def _whole(self, request: web.Request) -> web.Response:
        for index, _word in enumerate(self.words):
            await self._pause(index, request)
        message = {"role": "assistant", "content": "".join(self.words)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"object": "chat.completion", "choices": [choice]})

    async def _stream(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for thought in self.thoughts:
            delta = {"reasoning_content": thought}
            await response.write(_event({"choices": [_choice(delta, None)]}))
        for index, word in enumerate(self.words):
            await self._pause(index, request)
            await response.write(_event({"choices": [_choice({"content": word}, None)]}))
        if self.ends_early:
            return response
        await response.write(_event({"choices": [_choice({}, "stop")]}))
        if body.get("stream_options", {}).get("include_usage"):
            usage = {"prompt_tokens": 7, "completion_tokens": len(self.words), "total_tokens": 10}
            await response.write(_event({"choices": [], "usage": usage}))
        await response.write(b"data: [DONE]\n\n")
        return response


def _choice(delta: dict[str, str], finish_reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}


def _event(value: object) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


@asynccontextmanager
async def running(head: FakeHead) -> AsyncIterator[FakeHead]:
    """The head on a free loopback port."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", head.handle)
    app.router.add_post("/v1/completions", head.handle)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    head.url = f"http://{host}:{port}"
    try:
        yield head
    finally:
        head.release.set()
        await runner.cleanup()
