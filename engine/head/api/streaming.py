"""Answers that end when their reader leaves."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")


class ClientGone(Exception):
    """The client hung up before its answer was complete."""


async def until_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Run `work`, or cancel it when the client hangs up and raise ClientGone."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


class EventStream(Response):
    """Sends server-sent events as they come, until they end or the client hangs up.

    `closed` is called in the end, whatever happened, even when no event was ever asked for.
    """

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncIterator[bytes], closed: Callable[[], None], **headers: str
    ) -> None:
        """`headers` with underscores for dashes."""
        fixed = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(headers=fixed | own)
        del self.headers["content-length"]
        self._events = events
        self._closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await until_disconnect(receive, self._send_all(send))
        except (ClientGone, OSError):
            return
        finally:
            self._closed()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for event in self._events:
            if not event:
                continue
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
