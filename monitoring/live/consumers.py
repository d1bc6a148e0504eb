"""`/ws/telemetry`: live telemetry for signed-in browsers."""

import asyncio
import logging
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.http import QueryDict
from django.utils import translation

from monitoring.live.desk import live
from monitoring.live.view import Client, Key
from monitoring.scopes import NOTHING, Hidden, hidden_from
from monitoring.visitors import signed_out

log = logging.getLogger(__name__)

SEND_SECONDS = 10.0
CLOSE_SECONDS = 1.0
MOST_NAME = 64
"""Characters of a metric's name."""
SIGNED_OUT = 4401
LIMITS_CHANGED = 4409
"""The page comes back and is told what it may see now."""
TOO_SLOW = 4408


class Wanted(msgspec.Struct, frozen=True):
    scope: Literal["fleet", "node", "deployment"]
    id: int | None = None


class Asked(msgspec.Struct, frozen=True):
    subscribe: Wanted | None = None
    grid: Annotated[str, msgspec.Meta(max_length=MOST_NAME)] | None = None
    """A metric of every accelerator in the scope, told with `subscribe`."""
    pause: bool | None = None


class TelemetryConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels is untyped
    """In: `{"subscribe": {"scope", "id"}, "grid"}` and `{"pause"}`. Out: `{"layouts"}` before the
    `{"frames", "now"}` that need them, `{"grid"}`, and `{"changed": true}` when the page should be
    seeded anew: its scope consists of other subjects than before, or its past was filled in."""

    channel_layer_alias = "none"
    """What is read comes through the hub of this process."""

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without Channels' look at old database connections: none is opened here."""
        await getattr(self, message["type"].replace(".", "_"))(message)

    async def connect(self) -> None:
        self._client = Client()
        self._tasks: list[asyncio.Task[None]] = []
        self._hidden, self._limits_known = NOTHING, True
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(SIGNED_OUT)
            return
        self._language = _language(self.scope["query_string"])
        self._hidden = await self._limits()
        await self.accept()
        self._tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._watch())]

    async def disconnect(self, code: int) -> None:
        live().hub.leave(self._client)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any
    ) -> None:
        try:
            asked = msgspec.json.decode(text_data or bytes_data or b"", type=Asked)
        except msgspec.MsgspecError as error:
            await self.send(text_data=msgspec.json.encode({"error": str(error)}).decode())
            return
        if asked.pause is not None:
            self._client.pause(asked.pause)
        if asked.subscribe is not None:
            wanted = asked.subscribe
            key = Key(wanted.scope, wanted.id, self._language, asked.grid, self._hidden)
            await live().hub.follow(self._client, key)

    async def _watch(self) -> None:
        await signed_out(self.scope, self._as_before)
        code = SIGNED_OUT if self._limits_known else LIMITS_CHANGED
        with suppress(OSError):
            await self.close(code)

    async def _limits(self) -> Hidden:
        found: Hidden = await database_sync_to_async(hidden_from)(self.scope["user"])
        return found

    async def _as_before(self) -> bool:
        self._limits_known = await self._limits() == self._hidden
        return self._limits_known

    async def _send(self) -> None:
        try:
            while True:
                for message in await self._client.take():
                    async with asyncio.timeout(SEND_SECONDS):
                        await self.send(text_data=message)
        except TimeoutError:
            log.info("a telemetry client took nothing for %.0f s and is let go", SEND_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self.close(TOO_SLOW)
        except OSError:
            return  # The client has gone; `disconnect` follows.


def _language(query: bytes) -> str:
    """`?lang=` of the page; the default language when it is none of ours."""
    asked = QueryDict(query).get("lang", "")
    try:
        return translation.get_supported_language_variant(str(asked))
    except LookupError:
        return translation.get_language() or "en"
