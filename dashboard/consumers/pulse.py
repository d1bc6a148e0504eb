"""Signs of life: those of all agents of this process are written down together, once a second."""

import asyncio
import contextlib
import logging
from concurrent.futures import ThreadPoolExecutor
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
    """Has a thread of its own: a fleet that dials at once keeps the common one busy for long, and
    nobody should count as silent for that."""

    def __init__(self) -> None:
        self._heard: dict[int, Living] = {}
        self._task: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    def note(self, node: int, agent: Living) -> None:
        self._heard[node] = agent
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write())

    async def forget(self, node: int, agent: Living) -> None:
        """Its connection is lost, and no sign of life is written any more that would undo that."""
        if self._heard.get(node) is agent:
            del self._heard[node]
        async with self._writing:
            pass

    async def _write(self) -> None:
        thread = ThreadPoolExecutor(1, thread_name_prefix="pulse")
        try:
            while self._heard:
                await asyncio.sleep(GATHER_SECONDS)
                async with self._writing:
                    heard, self._heard = self._heard, {}
                    await _write_down(heard, thread)
        finally:
            self._task = None
            thread.shutdown(wait=False)


async def _write_down(heard: dict[int, Living], thread: ThreadPoolExecutor) -> None:
    signs = {node: agent.connection for node, agent in heard.items()}
    beat = database_sync_to_async(lifecycle.beat, thread_sensitive=False, executor=thread)
    try:
        generations = await beat(signs)
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
