"""No request body beyond the limit reaches Django, which would spool all of it to disk first."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class BodyLimit:
    """ASGI: 413 as soon as the declared or the arrived length is too large."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if _declared(scope) > limit:
            await _refuse(send, limit)
            return
        arrived = 0

        async def counted() -> Mapping[str, Any]:
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            # To Django the client has gone: it drops the body and sends nothing.
            return {"type": "http.disconnect"} if arrived > limit else message

        await self._application(scope, counted, send)
        if arrived > limit:
            await _refuse(send, limit)


def _declared(scope: Message) -> int:
    value = dict(scope["headers"]).get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0


async def _refuse(send: Send, limit: int) -> None:
    text = _("The request is larger than %(limit)s MiB.") % {"limit": f"{limit / 1024**2:g}"}
    body = ApiError(text, status=413, code="request_too_large").encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
