"""Browser sockets are for our own pages only."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class SameOrigin:
    """Refuses (403) a socket that another site's page opens with our cookies.

    Programs send no Origin and carry no cookies of a person, so they pass; each consumer still
    asks who they are.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not _same_origin(dict(scope["headers"])):
            await WebsocketDenier()(scope, receive, send)
            return
        await self.application(scope, receive, send)


def _same_origin(headers: dict[bytes, bytes]) -> bool:
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin or origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    return urlsplit(origin).netloc == headers.get(b"host", b"").decode("latin-1")
