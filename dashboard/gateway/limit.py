"""No request body beyond the limit reaches Django, which would spool all of it to disk first."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from dashboard.firmware.limit import is_upload_of_somebody
from dashboard.gateway.dialects.spoken import error_body
from dashboard.gateway.errors import ApiError

STALL_SECONDS = 30.0
"""Longest pause in a body; who sends half of one would otherwise hold a connection for ever."""

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class BodyLimit:
    """ASGI: 413 as soon as the declared or arrived length is too large, 408 when a body stalls."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        limit = await _limit(scope)
        if _declared(scope) > limit:
            await _refuse_size(scope, send, limit)
            return
        arrived, whole, stalled = 0, False, False

        async def counted() -> Mapping[str, Any]:
            nonlocal arrived, whole, stalled
            try:
                async with asyncio.timeout(None if whole else STALL_SECONDS):
                    message = await receive()
            except TimeoutError:
                stalled = True
                return {"type": "http.disconnect"}
            arrived += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            # To Django the client has gone: it drops the body and sends nothing.
            return {"type": "http.disconnect"} if arrived > limit else message

        await self._application(scope, counted, send)
        if arrived > limit:
            await _refuse_size(scope, send, limit)
        elif stalled:
            await _refuse(
                scope, send, 408, _("The request's body did not arrive."), "request_timeout"
            )


async def _limit(scope: Message) -> int:
    usual: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if await is_upload_of_somebody(scope):
        return max(usual, settings.FIRMWARE_MOST_BYTES + usual)
    return usual


def _declared(scope: Message) -> int:
    value = dict(scope["headers"]).get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0


async def _refuse_size(scope: Message, send: Send, limit: int) -> None:
    text = _("The request is larger than %(limit)s MiB.") % {"limit": f"{limit / 1024**2:g}"}
    await _refuse(scope, send, 413, text, "request_too_large")


async def _refuse(scope: Message, send: Send, status: int, text: str, code: str) -> None:
    named = {name.decode("latin-1"): "" for name, _value in scope["headers"]}
    body = error_body(ApiError(text, status=status, code=code), scope["path"], named)
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
