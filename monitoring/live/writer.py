"""Frames on their way into Postgres: in batches, by one thread, never more than memory holds."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from django.db import Error, InterfaceError, OperationalError, connection

from monitoring.live.desk import filled
from monitoring.live.frames import Frame
from monitoring.storage.store import store

log = logging.getLogger(__name__)

SPACING_SECONDS = 0.2
"""Between two batches; a commit costs the same whether it holds one frame or a hundred."""
MOST_LIVE, MOST_PAST = 1000, 80
"""Frames of one batch. The past is stored behind the present, at 400 frames/s at most."""
MOST_NUMBERS = 2_000_000
"""What waits at most, some 100 MB. More is not taken; its agents send it again."""
FIRST_DELAY, MOST_DELAY = 0.5, 5.0
"""Before the next try while the database does not answer."""

Settled = Callable[[Sequence[Frame]], None]
Waiting = tuple[Frame, Settled]


class Writer:
    """One an event loop. Frames that arrive while a batch is written make up the next one."""

    def __init__(self) -> None:
        self._live: deque[Waiting] = deque()
        self._past: deque[Waiting] = deque()
        self._numbers = 0
        self._task: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._delay = 0.0
        self._full = False

    def put(self, frame: Frame, settled: Settled, *, live: bool = True) -> None:
        """`settled` is called once for all frames of a batch that came with it."""
        if self._numbers >= MOST_NUMBERS:
            if not self._full:
                log.error("Telemetry is dropped: the database is slower than what arrives.")
            self._full = True
            return
        (self._live if live else self._past).append((frame, settled))
        self._numbers += frame.weight
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._write())

    async def close(self) -> None:
        """Give up what waits; its agents still have it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, _hang_up)
            self._thread.shutdown()
        self._task = self._thread = None
        self._live.clear()
        self._past.clear()
        self._numbers = 0

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="readings")
        while self._live or self._past:
            live = [self._live.popleft() for _ in range(min(MOST_LIVE, len(self._live)))]
            past = [self._past.popleft() for _ in range(min(MOST_PAST, len(self._past)))]
            batch = [frame for frame, _settled in live + past]
            try:
                await loop.run_in_executor(self._thread, _store, batch)
            except (OperationalError, InterfaceError) as error:
                self._live.extendleft(reversed(live))
                self._past.extendleft(reversed(past))
                self._put_off(error)
                await asyncio.sleep(self._delay)
            else:
                self._numbers -= sum(frame.weight for frame in batch)
                self._delay, self._full = 0.0, False
                _settle(live + past)
                filled({frame.node for frame, _settled in past})
                await asyncio.sleep(SPACING_SECONDS)

    def _put_off(self, error: Error) -> None:
        if not self._delay:
            log.warning("Readings wait for the database: %s", error)
        self._delay = min(MOST_DELAY, self._delay * 2 or FIRST_DELAY)


def _store(frames: Sequence[Frame]) -> None:
    """In the writer's thread, whose connection stays open until something is wrong with it."""
    try:
        store(frames)
    except (OperationalError, InterfaceError):
        connection.close()
        raise
    except Error:
        for frame in frames:
            _store_alone(frame)


def _store_alone(frame: Frame) -> None:
    """One frame that Postgres cannot keep costs none of those that came with it."""
    try:
        store([frame])
    except (OperationalError, InterfaceError):
        connection.close()
        raise
    except Error as error:
        frame.stored = 0
        frame.refused.append("It cannot be stored.")
        log.error("A frame of node %s cannot be stored: %s", frame.node, error)


def _hang_up() -> None:
    """In the writer's thread: each has a connection of its own."""
    connection.close()


def _settle(batch: Sequence[Waiting]) -> None:
    by_origin: dict[Settled, list[Frame]] = {}
    for frame, settled in batch:
        by_origin.setdefault(settled, []).append(frame)
    for settled, frames in by_origin.items():
        settled(frames)


_writers: WeakKeyDictionary[asyncio.AbstractEventLoop, Writer] = WeakKeyDictionary()


def writer() -> Writer:
    """That of the running loop."""
    return _writers.setdefault(asyncio.get_running_loop(), Writer())
