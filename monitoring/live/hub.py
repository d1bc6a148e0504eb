"""The browsers of one web process: what they look at, and the newest reading of everything."""

import asyncio
import logging
import time
from collections.abc import Collection, Sequence

from channels.db import database_sync_to_async
from django.db import Error

from monitoring.live.fleet_now import GROUPS, sum_up
from monitoring.live.relay import Relay
from monitoring.live.spots import Spot, joined
from monitoring.live.view import Client, Key, View
from monitoring.scopes import Hidden, ScopeName, subjects

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.1
"""Readings that come closer together than this travel together."""
REFRESH_SECONDS = 5.0
"""How often it is asked anew what a scope consists of: a restart brings another launch."""
GROUP_SECONDS = 1.0
FRESH_SECONDS = 2.5
"""Older readings do not count in a group."""
FORGET_SECONDS = 60.0
QUIET_SECONDS = 5.0
"""The past counts as filled in once nothing more of it has come for so long."""

Scope = tuple[ScopeName, int | None, Hidden]


class Hub:
    """Nothing is kept and nothing heard while nobody looks."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._latest: dict[str, Spot] = {}
        self._parts: dict[str, dict[int, Spot]] = {}
        """Topic -> the newest that each node told of it; `_latest` has them joined."""
        self._views: dict[Key, View] = {}
        self._by_topic: dict[str, list[View]] = {}
        self._flushed = 0.0
        self._flush_due: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._filled: set[int] = set()
        self._filled_at = 0.0

    def take(self, spots: Sequence[Spot]) -> None:
        """Newest readings; what is not newer than what is known is passed over."""
        if not self._views:
            return
        touched = False
        for spot in spots:
            topic = spot.topic
            parts = self._parts.setdefault(topic, {})
            known = parts.get(spot.node)
            if known is not None and 0.0 <= known.at - spot.at < FORGET_SECONDS:
                continue
            parts[spot.node] = spot
            self._latest[topic] = spot if len(parts) == 1 else joined(parts.values())
            for view in self._by_topic.get(topic, ()):
                view.touch(topic)
                touched = True
        if touched:
            self._flush_soon()

    def filled(self, nodes: Collection[int]) -> None:
        if self._views:
            self._filled.update(nodes)
            self._filled_at = time.monotonic()

    async def follow(self, client: Client, key: Key) -> None:
        """From now on the client is told what this is about. Raises nothing when the database does
        not answer: then it is asked again."""
        self.leave(client)
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = View(key, self._latest)
            self._start()
        view.clients.add(client)
        client.view = view
        if not view.topics:
            await self._resolve([view])
        if client.view is view:
            client.renew()

    def leave(self, client: Client) -> None:
        view, client.view = client.view, None
        if view is None:
            return
        view.clients.discard(client)
        if not view.clients:
            self._views.pop(view.key, None)
            self._index()
        if not self._views:
            self._stop()

    async def close(self) -> None:
        tasks = self._tasks
        self._stop()
        if tasks:
            await asyncio.wait(tasks)

    def _start(self) -> None:
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [
                loop.create_task(self._keep_resolving()),
                loop.create_task(self._tick()),
                loop.create_task(self._relay.listen(self.take, self.filled)),
            ]

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        if self._flush_due is not None:
            self._flush_due.cancel()
            self._flush_due = None
        self._latest.clear()
        self._parts.clear()
        self._filled.clear()

    def _flush_soon(self) -> None:
        if self._flush_due is None:
            loop = asyncio.get_running_loop()
            due = max(loop.time(), self._flushed + FLUSH_SECONDS)
            self._flush_due = loop.call_at(due, self._flush)

    def _flush(self) -> None:
        self._flush_due = None
        self._flushed = asyncio.get_running_loop().time()
        for view in self._views.values():
            view.flush()

    async def _tick(self) -> None:
        """Groups and grids, on the second."""
        while True:
            now = time.time()
            due = now - now % GROUP_SECONDS + GROUP_SECONDS
            await asyncio.sleep(due - now)
            self._sum_up(due)
            for view in self._views.values():
                view.flush_grid(due)

    def _sum_up(self, now: float) -> None:
        wanted = [group for group in GROUPS if f"group:{group}" in self._by_topic]
        if wanted:
            fresh = [spot for spot in self._latest.values() if now - spot.at <= FRESH_SECONDS]
            self.take(sum_up(fresh, wanted, now))

    async def _keep_resolving(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            old = time.time() - FORGET_SECONDS
            for topic in [topic for topic, spot in self._latest.items() if spot.at < old]:
                del self._latest[topic], self._parts[topic]
            await self._resolve(list(self._views.values()))
            self._tell_filled()

    async def _resolve(self, views: Sequence[View]) -> None:
        """Ask what they consist of now, and have their browsers told if that has changed."""
        scopes = {_scope_of(view) for view in views}
        try:
            topics = await database_sync_to_async(_topics)(scopes)
        except Error as error:
            log.warning("What is looked at cannot be read: %s", error)
            return
        changed = [view.look_at(topics[_scope_of(view)]) for view in views]
        if any(changed):
            self._index()

    def _tell_filled(self) -> None:
        if not self._filled or time.monotonic() - self._filled_at < QUIET_SECONDS:
            return
        for view in self._views.values():
            if any(view.concerns(node) for node in self._filled):
                view.renew(changed=True)
        self._filled.clear()

    def _index(self) -> None:
        self._by_topic = {}
        for view in self._views.values():
            for topic in view.topics:
                self._by_topic.setdefault(topic, []).append(view)


def _topics(scopes: Collection[Scope]) -> dict[Scope, list[str]]:
    return {scope: [s.topic for s in subjects(*scope)] for scope in scopes}


def _scope_of(view: View) -> Scope:
    return view.key.scope, view.key.id, view.key.hidden
