"""What this process has let in, until Postgres has it and the counters have it."""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

import redis.asyncio
from django.conf import settings
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from dashboard.gateway.budgets import counters, told
from dashboard.gateway.budgets.counters import EPOCH, OPENING, Line
from dashboard.gateway.budgets.limits import KINDS, Limit
from dashboard.gateway.budgets.state import State, state
from dashboard.gateway.errors import ApiError
from dashboard.gateway.patience import AWAY, once

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 10.0
PAUSE_SECONDS = 0.1
CHECK_SECONDS = 0.4
OPENING_SECONDS = 1.5
"""In which every process adds what only it knows; longer than its checks and its state's age."""


@dataclass
class Entry:
    """One request."""

    id: str
    begun: datetime
    subjects: tuple[str, ...]
    tokens: int
    micros: int
    settled: bool = False
    """Then these are what it really took."""
    counts: bool = True
    written: bool = False
    epoch: str = ""
    lines: list[Line] = field(default_factory=list)
    """What the counters of that epoch have of it."""
    told: bool = False
    """The counters know that it is settled."""

    def line(self, limit: Limit, warning: int = 100) -> Line:
        what = KINDS[limit.kind][0]
        amount = {"requests": 1, "tokens": self.tokens, "money": self.micros}[what]
        known = self.settled or what == "requests"
        most, warn_at = limit.most, -(-limit.most * warning // 100)
        counter, ttl = limit.counter(self.begun), told.left(limit, self.begun) + 60
        used, reserved = (amount, 0) if known else (0, amount)
        return Line(counter, used, reserved, most, warn_at, ttl)


class Ledger:
    """One an event loop."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._epoch = ""
        self._client: Any = redis.asyncio.Redis.from_url(
            settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2
        )
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()

    async def reserve(self, entry: Entry, limits: Sequence[Limit], warning: int) -> Any:
        """The script's answer: 'ok' or 'over'."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        lines = [entry.line(limit, warning) for limit in limits]
        flat = [
            str(part)
            for each in lines
            for part in (
                each.counter,
                each.used,
                each.reserved,
                each.most,
                each.warn_at,
                each.ttl,
            )
        ]
        while True:
            try:
                epoch = self._epoch
                found = await self._client.eval(counters.RESERVE, 1, EPOCH, epoch, *flat)
                if found[0] == b"ok":
                    entry.epoch, entry.lines = epoch, lines
                    self.entries[entry.id] = entry
                    self._watch()
                if found[0] != b"lost":
                    return found
                await self.catch_up()
            except (RedisError, OSError, *AWAY) as error:
                if time.monotonic() > deadline:
                    raise _away() from error
                await asyncio.sleep(PAUSE_SECONDS)

    def add(self, entry: Entry) -> None:
        """One that no budget limits yet; a new one may count it."""
        self.entries[entry.id] = entry
        self._watch()

    def settle(self, number: str, tokens: int | None, micros: int | None) -> None:
        entry = self.entries.get(number)
        if entry is None or entry.settled:
            return
        entry.counts = tokens is not None
        entry.tokens, entry.micros, entry.settled = tokens or 0, micros or 0, True
        if entry.lines:
            task = asyncio.get_running_loop().create_task(self._settle_soon(entry))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    def written(self, numbers: Iterable[str]) -> None:
        for number in numbers:
            if number in self.entries:
                self.entries[number].written = True

    async def close(self) -> None:
        """What is settled is told, as far as Valkey lets that be done soon."""
        if self._settling:
            await asyncio.wait(self._settling, timeout=2)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._client.aclose()

    async def _settle_soon(self, entry: Entry) -> None:
        with suppress(RedisError, OSError):  # The next check tries again.
            await self._settle(entry)

    async def _settle(self, entry: Entry) -> None:
        flat: list[str] = []
        for line in entry.lines:
            kind = line.counter.rsplit(":", 2)[1]
            real = {"requests": int(entry.counts), "tokens": entry.tokens, "money": entry.micros}
            used = real[KINDS[kind][0]] - line.used
            flat += [line.counter, str(used), str(-line.reserved), str(line.ttl)]
        done = await self._client.eval(
            counters.ADD, 2, EPOCH, OPENING, entry.epoch, entry.id, "settle", *flat
        )
        if done:
            entry.told = True

    def _watch(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._check())

    async def _check(self) -> None:
        """While there is anything that only this process knows."""
        while self.entries:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self._check_once()
            except (RedisError, OSError, ApiError, *AWAY) as error:
                log.debug("Budgets wait: %s", error)

    async def _check_once(self) -> None:
        done = [entry for entry in self.entries.values() if entry.written]
        now = await state()
        if now.limits:
            found = await self._client.mget(EPOCH, OPENING)
            if self._epoch.encode() not in found or not self._epoch:
                await self.catch_up()
            for entry in list(self.entries.values()):
                if entry.settled and entry.lines and not entry.told:
                    await self._settle(entry)
        for entry in done:
            if entry.told or not entry.lines:
                self.entries.pop(entry.id, None)

    async def catch_up(self) -> None:
        """Returns once counters of an epoch are open that know all this process knows."""
        async with self._lock:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await self._caught_up():
                    await asyncio.sleep(PAUSE_SECONDS / 2)

    async def _caught_up(self) -> bool:
        epoch, opening = await self._client.mget(EPOCH, OPENING)
        current = (epoch or opening or b"").decode()
        if not current:
            await self._build()
            return False
        if current != self._epoch:
            await self._tell(current)
        return bool(epoch)

    async def _tell(self, epoch: str) -> None:
        now = await state()
        for entry in list(self.entries.values()):
            if entry.epoch != epoch:
                await self._tell_of(entry, epoch, now)
        self._epoch = epoch

    async def _tell_of(self, entry: Entry, epoch: str, now: State) -> None:
        settled = entry.settled
        lines = [entry.line(limit) for limit in now.limits_of(entry.subjects)]
        if settled and not entry.counts:
            lines = []
        flat = [
            str(part)
            for each in lines
            for part in (each.counter, each.used, each.reserved, each.ttl)
        ]
        if lines and not await self._client.eval(
            counters.ADD, 2, EPOCH, OPENING, epoch, entry.id, "tell", *flat
        ):
            return
        entry.epoch, entry.lines, entry.told = epoch, lines, settled

    async def _build(self) -> None:
        numbers, lines = await once(told.snapshot)
        epoch = secrets.token_hex(8)
        first = await self._client.eval(
            counters.PUBLISH, 2, EPOCH, OPENING, epoch, json.dumps(numbers), json.dumps(lines)
        )
        if first:
            await self._tell(epoch)
            await asyncio.sleep(OPENING_SECONDS)
            await self._client.eval(counters.OPEN, 2, EPOCH, OPENING, epoch)


def _away() -> ApiError:
    text = _("What counts your budget does not answer; try again in a moment.")
    return ApiError(text, status=503, code="budget_away", retry_after=2)


_ledgers: WeakKeyDictionary[asyncio.AbstractEventLoop, Ledger] = WeakKeyDictionary()


def ledger() -> Ledger:
    """That of the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _ledgers:
        _ledgers[loop] = Ledger()
    return _ledgers[loop]
