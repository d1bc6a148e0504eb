"""Live telemetry for browsers: one latest slot a topic, so a slow one misses frames."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

import msgspec
import redis
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.http import QueryDict
from django.utils import translation

from monitoring.charts import metrics
from monitoring.live import FLEET, launch_group, launch_of, node_group
from monitoring.packing import Field
from monitoring.scopes import Subject, subjects, topic_of

log = logging.getLogger(__name__)

MIN_INTERVAL_SECONDS = 0.8
"""Frames of a topic closer than this are skipped: a page gets about one a second."""
REFRESH_SECONDS = 5.0
"""How often it is asked anew what the scope consists of: a restart brings another launch."""
SEND_SECONDS = 10.0
CLOSE_SECONDS = 1.0
SIGNED_OUT = 4401
TOO_SLOW = 4408

LiveFrame = dict[str, Any]


class Wanted(msgspec.Struct, frozen=True):
    scope: Literal["fleet", "node", "deployment"]
    id: int | None = None


class Subscribe(msgspec.Struct, frozen=True):
    subscribe: Wanted


class LatestSlots:
    """The newest frame of each topic until it is taken."""

    def __init__(self) -> None:
        self._slots: dict[str, LiveFrame] = {}
        self._taken: dict[str, float] = {}
        self._filled = asyncio.Event()

    def put(self, topic: str, frame: LiveFrame) -> None:
        if frame["at"] - self._taken.get(topic, 0.0) >= MIN_INTERVAL_SECONDS:
            self._slots[topic] = frame
            self._filled.set()

    async def take(self) -> list[LiveFrame]:
        await self._filled.wait()
        self._filled.clear()
        frames = list(self._slots.values())
        self._taken.update((topic, frame["at"]) for topic, frame in self._slots.items())
        self._slots.clear()
        return frames


class TelemetryConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # Channels is untyped
    """`{"subscribe": {"scope", "id"}}` in; `{"frames": [...]}` out, and `{"changed": true}` when
    the scope consists of other subjects than before and should be seeded anew."""

    async def connect(self) -> None:
        self._slots = LatestSlots()
        self._wanted: Wanted | None = None
        self._topics: frozenset[str] = frozenset()
        self._metrics: frozenset[str] = frozenset()
        self._groups: frozenset[str] = frozenset()
        self._tasks: list[asyncio.Task[None]] = []
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(SIGNED_OUT)
            return
        self._language = _language(self.scope["query_string"])
        await self.accept()

    async def disconnect(self, code: int) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(redis.RedisError, OSError):  # A channel layer that is down forgets by itself.
            await self._join(frozenset())

    async def receive_json(self, content: Any, **_kwargs: Any) -> None:
        try:
            self._wanted = msgspec.convert(content, Subscribe).subscribe
        except msgspec.ValidationError as error:
            await self.send_json({"error": str(error)})
            return
        self._metrics = metrics(self._wanted.scope)
        await self._resolve()
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._send_frames()),
                asyncio.create_task(self._keep_resolving()),
            ]
        await self.send_json({"subscribed": sorted(self._topics)})

    async def telemetry_frame(self, message: dict[str, Any]) -> None:
        """From `monitoring.live`: leave the frame in its slots and go on."""
        for subject, fields, numbers in message["readings"]:
            topic = topic_of(message["node"], subject)
            if topic in self._topics:
                told = zip(fields, numbers, strict=True)
                self._slots.put(topic, self._frame(topic, message["at"], told))

    def _frame(
        self, topic: str, at: float, told: Iterable[tuple[Field, float | None]]
    ) -> LiveFrame:
        """What the scope's charts draw: value or reason, and how each came about."""
        frame: LiveFrame = {"topic": topic, "at": at, "values": {}, "absent": {}, "how": {}}
        for (metric, _unit, source, kind, _scope, reason, _label), number in told:
            if metric not in self._metrics or metric in frame["how"]:
                continue
            frame["values"][metric] = number
            frame["how"][metric] = (kind, source)
            if number is None:
                frame["absent"][metric] = reason
        return frame

    async def _send_frames(self) -> None:
        try:
            while True:
                frames = [self._translated(frame) for frame in await self._slots.take()]
                async with asyncio.timeout(SEND_SECONDS):
                    await self.send_json({"frames": frames})
        except TimeoutError:
            log.info("a telemetry client took nothing for %.0f s and is let go", SEND_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self.close(TOO_SLOW)
        except OSError:
            return  # The client has gone; `disconnect` follows.

    async def _keep_resolving(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            if await self._resolve():
                await self.send_json({"changed": True})

    async def _resolve(self) -> bool:
        """Follow what the scope consists of now; whether that has changed."""
        assert self._wanted is not None
        found = await database_sync_to_async(subjects)(self._wanted.scope, self._wanted.id)
        topics = frozenset(subject.topic for subject in found)
        if topics == self._topics:
            return False
        await self._join(_groups(self._wanted, found))
        self._topics = topics
        return True

    async def _join(self, groups: frozenset[str]) -> None:
        for group in self._groups - groups:
            await self.channel_layer.group_discard(group, self.channel_name)
        for group in groups - self._groups:
            await self.channel_layer.group_add(group, self.channel_name)
        self._groups = groups

    def _translated(self, frame: LiveFrame) -> LiveFrame:
        with translation.override(self._language):
            absent = {
                metric: translation.gettext(reason) if reason else ""
                for metric, reason in frame["absent"].items()
            }
        return {**frame, "absent": absent}


def _groups(wanted: Wanted, found: list[Subject]) -> frozenset[str]:
    if wanted.scope == "fleet":
        return frozenset({FLEET})
    launches = {launch_of(subject.subject) for subject in found} - {None}
    nodes = {subject.node for subject in found} - {None}
    return frozenset(
        [launch_group(launch) for launch in launches if launch]
        + [node_group(node) for node in nodes if node is not None]
    )


def _language(query: bytes) -> str:
    """`?lang=` of the page; the default language when it is none of ours."""
    asked = QueryDict(query).get("lang", "")
    try:
        return translation.get_supported_language_variant(str(asked))
    except LookupError:
        return translation.get_language() or "en"
