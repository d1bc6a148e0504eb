"""`/ws/events`: what changed, for signed-in browsers. Pages fetch the rest themselves."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer

from dashboard.access import hidden_from
from dashboard.outbox import FLEET, deployment_group
from monitoring.scopes import NOTHING, Hidden
from monitoring.visitors import signed_out

SIGNED_OUT = 4403
UNREADABLE = 4400


class Subject(msgspec.Struct, frozen=True):
    deployment: int


class Watch(msgspec.Struct, frozen=True):
    """`{"watch": {"deployment": 7}}`: follow its progress and log instead of any other's."""

    watch: Subject


class EventsConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # Channels is untyped
    """Ids and kinds alone: `{"kind": "deployment", "id": 7}`; log lines come with their text."""

    watched: str | None = None
    signed_in: asyncio.Task[None] | None = None
    """Ends with the user's session."""
    hidden: Hidden = NOTHING

    async def connect(self) -> None:
        await self.accept()
        if not self.scope["user"].is_authenticated:
            await self.close(SIGNED_OUT)
            return
        await self._look()
        await self.channel_layer.group_add(FLEET, self.channel_name)
        self.signed_in = asyncio.create_task(self._sign_out())

    async def disconnect(self, code: int) -> None:
        if self.signed_in is not None:
            self.signed_in.cancel()
            await asyncio.wait({self.signed_in})
        await self.channel_layer.group_discard(FLEET, self.channel_name)
        await self._watch(None)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any
    ) -> None:
        if not self.scope["user"].is_authenticated:
            return
        try:
            message = msgspec.json.decode(text_data or "", type=Watch)
        except msgspec.DecodeError:
            await self.close(UNREADABLE)
            return
        watched = message.watch.deployment
        hidden = watched in self.hidden.deployments
        await self._watch(None if hidden else deployment_group(watched))

    async def event(self, message: dict[str, Any]) -> None:
        event = message["event"]
        if event["id"] not in self._hidden_of(event["kind"]):
            await self.send_json(event)

    def _hidden_of(self, kind: str) -> frozenset[int]:
        if kind in ("node", "firmware"):
            return self.hidden.nodes
        return self.hidden.deployments if kind in ("deployment", "log") else frozenset()

    async def _look(self) -> bool:
        """What may be seen now; teams change while a page is open."""
        self.hidden = await database_sync_to_async(hidden_from)(self.scope["user"])
        return True

    async def _sign_out(self) -> None:
        await signed_out(self.scope, self._look)
        with suppress(OSError):
            await self.close(SIGNED_OUT)

    async def _watch(self, group: str | None) -> None:
        if self.watched:
            await self.channel_layer.group_discard(self.watched, self.channel_name)
        self.watched = group
        if group:
            await self.channel_layer.group_add(group, self.channel_name)
