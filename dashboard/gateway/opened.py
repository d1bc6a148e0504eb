"""What a request opened at an engine is closed when the request is over, however it ended."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from django.http import HttpRequest

KEY = "tandem.opened"

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Closable(Protocol):
    def close(self) -> None:
        """May be called more than once."""


class CloseOpened:
    """ASGI. Django drops a response unclosed when its caller hangs up while middleware still have
    it; the engine would go on writing for nobody.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        opened: list[Closable] = []
        scope[KEY] = opened
        try:
            await self._application(scope, receive, send)
        finally:
            for each in opened:
                each.close()


def close_in_the_end(request: HttpRequest, closable: Closable) -> None:
    scope: Message = getattr(request, "scope", {})
    scope.setdefault(KEY, []).append(closable)
