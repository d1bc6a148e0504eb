"""Signs of life: those of all agents of this process are written down together, once a second."""

import asyncio
import contextlib
import logging
from typing import Protocol
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import Error

from dashboard import lifecycle

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.5


class Living(Protocol):
    connection: str

    async def seen(self, generation: int | None) -> None:
        """It was written down, and this is the node's desired state; None: another connection has
        taken over."""


class Pulse:
    def __init__(self) -> None:
        self._heard: dict[int, Living] = {}
        self._task: asyncio.Task[None] | None = None

    def forget(self, node: int, agent: Living) -> None:
        """Its connection is lost: no sign of life that is yet to be written may undo that."""
        if self._heard.get(node) is agent:
            del self._heard[node]

    def note(self, node: int, agent: Living) -> None:
        self._heard[node] = agent
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._heard:
                await asyncio.sleep(GATHER_SECONDS)
                heard, self._heard = self._heard, {}
                await _write_down(heard)
        finally:
            self._task = None


async def _write_down(heard: dict[int, Living]) -> None:
    signs = {node: agent.connection for node, agent in heard.items()}
    try:
        generations = await database_sync_to_async(lifecycle.beat)(signs)
    except Error as error:
        log.warning("Signs of life of %d nodes are not written down: %s", len(signs), error)
        return
    for node, agent in heard.items():
        with contextlib.suppress(OSError):  # It has gone meanwhile.
            await agent.seen(generations.get(node))


_pulses: WeakKeyDictionary[asyncio.AbstractEventLoop, Pulse] = WeakKeyDictionary()


def pulse() -> Pulse:
    """That of the running loop."""
    return _pulses.setdefault(asyncio.get_running_loop(), Pulse())
