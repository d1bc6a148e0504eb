"""Readings between the web processes: one channel of Valkey, batches of MessagePack."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn
from uuid import uuid4

import msgspec
import redis
import redis.asyncio
from django.conf import settings

from monitoring.live.frames import CheckedLayout
from monitoring.live.spots import Spot
from monitoring.packing import Field, Numbers

log = logging.getLogger(__name__)

CHANNEL = "tandem.telemetry"
BATCH_SECONDS = 0.03
SEND_SECONDS = 2.0
LISTEN_SECONDS = 5.0
RETRY_SECONDS = 1.0
TELL_AGAIN_SECONDS = 2.0
"""How often the fields of a layout in use are told again, for processes that came later. Devices of
a kind share their fields, so these are few."""
MOST_SPOTS = 20_000
MOST_LAYOUTS = 8192


class Told(msgspec.Struct, frozen=True, array_like=True):
    digest: str
    fields: tuple[Field, ...]


class Batch(msgspec.Struct, frozen=True, array_like=True):
    layouts: list[Told]
    spots: list[tuple[int, str, str, float, Numbers]]
    """Node, subject, digest of its layout, time, numbers."""
    filled: list[int]


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Batch] = msgspec.msgpack.Decoder(Batch)


class Relay:
    """Sends what this process took in, and hears what the others did. A Valkey that is away costs
    the readings of that time, and only for browsers of other processes."""

    def __init__(self) -> None:
        self._origin = uuid4().bytes
        self._client: Any = None
        self._spots: deque[Spot] = deque(maxlen=MOST_SPOTS)
        self._filled: set[int] = set()
        self._sending: asyncio.Task[None] | None = None
        self._told: dict[str, float] = {}
        self._known: dict[str, CheckedLayout] = {}
        self._failing = False

    def send(self, spots: Sequence[Spot]) -> None:
        self._spots.extend(spots)
        self._start()

    def send_filled(self, nodes: Collection[int]) -> None:
        self._filled.update(nodes)
        self._start()

    async def listen(
        self,
        take: Callable[[Sequence[Spot]], None],
        filled: Callable[[Collection[int]], None],
    ) -> NoReturn:
        while True:
            try:
                async with self._connection().pubsub() as channel:
                    await channel.subscribe(CHANNEL)
                    while True:
                        message = await channel.get_message(
                            ignore_subscribe_messages=True, timeout=LISTEN_SECONDS
                        )
                        if message is not None:
                            self._hear(message["data"], take, filled)
            except (redis.RedisError, OSError) as error:
                log.info("Readings of other processes are not heard: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending})
            self._sending = None
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    def _connection(self) -> Any:
        if self._client is None:
            self._client = redis.asyncio.Redis.from_url(
                settings.REDIS_URL, socket_connect_timeout=SEND_SECONDS, health_check_interval=10
            )
        return self._client

    def _start(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._spots or self._filled:
            await asyncio.sleep(BATCH_SECONDS)
            payload = self._origin + _encoder.encode(self._batch())
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await self._connection().publish(CHANNEL, payload)
            except (redis.RedisError, OSError) as error:  # TimeoutError is one of the latter.
                if not self._failing:
                    log.warning("Readings do not reach other processes: %s", error)
                self._failing = True
            else:
                self._failing = False

    def _batch(self) -> Batch:
        now = time.monotonic()
        layouts: list[Told] = []
        spots = list(self._spots)
        for spot in spots:
            digest = spot.layout.digest
            if now - self._told.get(digest, -TELL_AGAIN_SECONDS) >= TELL_AGAIN_SECONDS:
                self._told[digest] = now
                layouts.append(Told(digest, spot.layout.fields))
        if len(self._told) > MOST_LAYOUTS:
            self._told.clear()
        filled = sorted(self._filled)
        self._spots.clear()
        self._filled.clear()
        rows = [(s.node, s.subject, s.layout.digest, s.at, s.numbers) for s in spots]
        return Batch(layouts, rows, filled)

    def _hear(
        self,
        payload: bytes,
        take: Callable[[Sequence[Spot]], None],
        filled: Callable[[Collection[int]], None],
    ) -> None:
        if payload.startswith(self._origin):
            return
        try:
            batch = _decoder.decode(payload[len(self._origin) :])
        except msgspec.MsgspecError as error:
            log.warning("Readings of another process cannot be read: %s", error)
            return
        for told in batch.layouts:
            self._learn(told)
        take(
            [
                Spot(node, subject, self._known[digest], at, numbers)
                for node, subject, digest, at, numbers in batch.spots
                if digest in self._known
            ]
        )
        if batch.filled:
            filled(batch.filled)

    def _learn(self, told: Told) -> None:
        if told.digest in self._known:
            return
        if len(self._known) >= MOST_LAYOUTS:
            self._known.clear()
        self._known[told.digest] = CheckedLayout("", told.fields, tuple(range(len(told.fields))))
