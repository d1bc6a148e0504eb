"""Rows of API requests on their way into Postgres: in batches, beside the requests themselves."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from weakref import WeakKeyDictionary

from django.contrib.auth import get_user_model
from django.db import Error, connection, transaction
from django.db.models import Model, Q
from django.utils import timezone

from dashboard.gateway.budgets.ledger import ledger
from dashboard.gateway.patience import AWAY
from dashboard.models import ApiKey, ApiRequest, Deployment

log = logging.getLogger(__name__)

LAST_USED_STEP = timedelta(minutes=1)
"""`last_used` of a busy key is written at most this often."""
SPACING_SECONDS = 1.0
MOST_AT_ONCE = 200
"""So many waiting are written at once, and so many make a batch."""
MOST_WAITING = 20_000
"""Some 20 MB. Of more the oldest are lost."""
FIRST_DELAY, MOST_DELAY = 0.5, 5.0
"""Before the next try while the database does not answer."""
CLOSE_SECONDS = 5.0


class RecordWriter:
    """One an event loop. Whoever puts a row waits for nothing."""

    def __init__(self) -> None:
        self._waiting: deque[ApiRequest] = deque()
        self._task: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._many = asyncio.Event()
        self._closing = asyncio.Event()
        self._lost = 0

    def put(self, row: ApiRequest) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append(row)
        if len(self._waiting) >= MOST_AT_ONCE:
            self._many.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._write())

    async def close(self) -> None:
        """Write what waits, as far as the database lets that be done soon."""
        self._closing.set()
        self._many.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._thread is not None:
            self._thread.submit(_hang_up)
            self._thread.shutdown(wait=False)
        self._lost += len(self._waiting)
        self._waiting.clear()
        self._tell_lost()
        self._task = self._thread = None
        self._closing.clear()
        self._many.clear()

    async def _write(self) -> None:
        delay = 0.0
        while self._waiting:
            await _within(self._many, SPACING_SECONDS)
            batch = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
            try:
                await self._in_thread(batch)
            except AWAY as error:
                if not delay:
                    log.warning("Records of API requests wait for the database: %s", error)
                delay = min(MOST_DELAY, delay * 2 or FIRST_DELAY)
                self._take_back(batch)
                if self._closing.is_set():
                    return
                await _within(self._closing, delay)
            else:
                delay = 0.0
                ledger().written(row.request for row in batch if row.endpoint != "/v1/streams")
                self._tell_lost()
            if len(self._waiting) < MOST_AT_ONCE and not self._closing.is_set():
                self._many.clear()

    async def _in_thread(self, batch: Sequence[ApiRequest]) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="requests")
        loop = asyncio.get_running_loop()
        self._lost += await loop.run_in_executor(self._thread, _store, batch)

    def _take_back(self, batch: Sequence[ApiRequest]) -> None:
        """As many as there is room for; those that came meanwhile are newer."""
        room = max(0, MOST_WAITING - len(self._waiting))
        kept = batch[len(batch) - min(room, len(batch)) :]
        self._lost += len(batch) - len(kept)
        self._waiting.extendleft(reversed(kept))

    def _tell_lost(self) -> None:
        if self._lost:
            log.error("%s records of API requests are lost.", self._lost)
        self._lost = 0


def _store(rows: Sequence[ApiRequest]) -> int:
    """How many cannot be stored. In the writer's thread, whose connection stays open."""
    try:
        _insert(rows)
    except AWAY:
        connection.close()
        raise
    except Error:
        return sum(not _stored_alone(row) for row in rows)
    return 0


def _stored_alone(row: ApiRequest) -> bool:
    """One row that Postgres cannot keep costs none of those that came with it."""
    try:
        _insert([row])
    except AWAY:
        connection.close()
        raise
    except Error as error:
        log.warning("The record of request %s cannot be stored: %s", row.request, error)
        return False
    return True


@transaction.atomic
def _insert(rows: Sequence[ApiRequest]) -> None:
    """What is gone by now is absent, and what is there already stays."""
    deployments = dict(
        Deployment.objects.filter(name__in={row.route for row in rows}).values_list("name", "pk")
    )
    keys = _existing(ApiKey, {row.key_id for row in rows})
    users = _existing(get_user_model(), {row.user_id for row in rows})
    for row in rows:
        row.deployment_id = deployments.get(row.route)
        row.key_id = row.key_id if row.key_id in keys else None
        row.user_id = row.user_id if row.user_id in users else None
    ApiRequest.objects.bulk_create(rows, ignore_conflicts=True)
    now = timezone.now()
    stale = Q(last_used=None) | Q(last_used__lt=now - LAST_USED_STEP)
    ApiKey.objects.filter(stale, pk__in=keys).update(last_used=now)


def _existing(model: type[Model], pks: Iterable[int | None]) -> set[int]:
    return set(model._default_manager.filter(pk__in=pks).values_list("pk", flat=True))


def _hang_up() -> None:
    """In the writer's thread: each has a connection of its own."""
    connection.close()


async def _within(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


_writers: WeakKeyDictionary[asyncio.AbstractEventLoop, RecordWriter] = WeakKeyDictionary()


def record_writer() -> RecordWriter:
    """That of the running loop."""
    return _writers.setdefault(asyncio.get_running_loop(), RecordWriter())
