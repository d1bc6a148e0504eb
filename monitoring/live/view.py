"""What one kind of page looks at: told once, to however many browsers look at it."""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from django.utils import translation

from monitoring.live.spots import Spot
from monitoring.packing import Field
from monitoring.samples import series_key
from monitoring.scopes import NOTHING, Hidden, ScopeName

STALE_SECONDS = 15.0
"""An older reading is no statement about now."""
CELL_SECONDS = 3.0
"""The same of a cell in a grid, where nothing shows how old it is."""

_encoder = msgspec.json.Encoder()


class Key(NamedTuple):
    """Who looks at the same thing in the same language gets the same bytes."""

    scope: ScopeName
    id: int | None
    language: str
    grid: str | None
    hidden: Hidden = NOTHING


class Client:
    """A browser. It has one slot: what it is too slow for, it misses, and then it is told all that
    is the case instead."""

    def __init__(self) -> None:
        self.view: View | None = None
        self.paused = False
        self._slot: list[str] = []
        self._grid = ""
        self._behind = False
        self._changed = False
        self._due = asyncio.Event()

    def offer(self, messages: list[str]) -> None:
        if self.paused or self._behind:
            return
        if self._slot:
            self.renew()
            return
        self._slot = messages
        self._due.set()

    def offer_grid(self, message: str) -> None:
        """A grid is whole each time, so the newest takes the place of one before."""
        if not self.paused:
            self._grid = message
            self._due.set()

    def renew(self, *, changed: bool = False) -> None:
        """Whatever it has been told, tell it everything anew."""
        self._changed = self._changed or changed
        self._slot, self._grid, self._behind = [], "", True
        self._due.set()

    def pause(self, on: bool) -> None:
        resumed = self.paused and not on
        self.paused = on
        if resumed:
            self.renew()

    async def take(self) -> list[str]:
        """What to send next."""
        while True:
            await self._due.wait()
            self._due.clear()
            if not self.paused:
                return self._take()

    def _take(self) -> list[str]:
        messages, self._slot = self._slot, []
        if self._behind:
            self._behind = False
            messages = self.view.everything() if self.view is not None else []
        if self._grid:
            messages = [*messages, self._grid]
            self._grid = ""
        if self._changed:
            self._changed = False
            messages = [_encode({"changed": True}), *messages]
        return messages


class View:
    def __init__(self, key: Key, latest: Mapping[str, Spot]) -> None:
        self.key = key
        self.clients: set[Client] = set()
        self.topics: frozenset[str] = frozenset()
        self._latest = latest
        self._dirty: set[str] = set()
        self._numbers: dict[str, tuple[int, str]] = {}
        """Topic -> the number and the digest of its layout. A number is never used twice, so
        that a browser may miss some."""
        self._next = 0
        self._untold: set[str] = set()
        """Topics whose layout not every browser knows yet."""
        self._known = False
        self._grid = ""
        self._everything: list[str] = []

    def look_at(self, topics: Iterable[str]) -> bool:
        """Whether it is something else than before, which its browsers are told."""
        found = frozenset(topics)
        known, self._known = self._known, True
        if found == self.topics:
            return False
        self.topics = found
        self._dirty &= found
        self._untold &= found
        self._numbers = {t: n for t, n in self._numbers.items() if t in found}
        self.renew(changed=known)
        return True

    def renew(self, *, changed: bool = False) -> None:
        self._everything = []
        for client in self.clients:
            client.renew(changed=changed)

    def concerns(self, node: int) -> bool:
        """Whether readings of that node may be among what it shows."""
        return any("/" not in topic or topic.startswith(f"{node}/") for topic in self.topics)

    def touch(self, topic: str) -> None:
        self._dirty.add(topic)
        self._everything = []

    def flush(self) -> None:
        """Tell what is new since the last time."""
        if not self._dirty:
            return
        dirty, self._dirty = sorted(self._dirty), set()
        if all(client.paused for client in self.clients):
            return
        messages = self._told(dirty, only_new=True)
        self._untold.clear()
        for client in self.clients:
            client.offer(messages)

    def flush_grid(self, now: float) -> None:
        if self.key.grid is None:
            return
        self._grid = _encode({"grid": self._cells(self.key.grid, now)})
        self._everything = []
        for client in self.clients:
            client.offer_grid(self._grid)

    def everything(self) -> list[str]:
        """All that is the case, for a browser that knows nothing; the same for all who ask."""
        if not self._everything:
            fresh = time.time() - STALE_SECONDS
            topics = [t for t in sorted(self.topics) if t in self._latest]
            current = [t for t in topics if self._latest[t].at >= fresh]
            grid = [self._grid] if self._grid else []
            self._everything = [*self._told(current, only_new=False), *grid]
        return self._everything

    def _told(self, topics: Collection[str], *, only_new: bool) -> list[str]:
        frames: list[tuple[int, float, Any]] = []
        layouts: list[Any] = []
        with translation.override(self.key.language):
            for topic in topics:
                spot = self._latest.get(topic)
                if spot is None:
                    continue
                number = self._number(topic, spot)
                if topic in self._untold or not only_new:
                    layouts.append(_layout(number, topic, spot))
                places = spot.layout.shown
                numbers = spot.numbers if places is None else [spot.numbers[i] for i in places]
                frames.append((number, spot.at, numbers))
        messages = [_encode({"layouts": layouts})] if layouts else []
        return [*messages, _encode({"frames": frames, "now": time.time()})]

    def _number(self, topic: str, spot: Spot) -> int:
        known = self._numbers.get(topic)
        if known is not None and known[1] == spot.layout.digest:
            return known[0]
        self._next += 1
        self._numbers[topic] = self._next, spot.layout.digest
        self._untold.add(topic)
        return self._next

    def _cells(self, metric: str, now: float) -> dict[str, Any]:
        whole = self.key.scope == "fleet"
        nodes = {topic.partition("/")[0] for topic in self.topics}
        cells = []
        for spot in self._latest.values():
            if not spot.subject.startswith("gpu:") or not (whole or str(spot.node) in nodes):
                continue
            if spot.node in self.key.hidden.nodes:
                continue
            index = spot.subject.partition(":")[2]
            if index.isdecimal():
                number = _read(spot, metric) if now - spot.at <= CELL_SECONDS else None
                cells.append((spot.node, int(index), number))
        return {"metric": metric, "at": now, "cells": sorted(cells, key=lambda cell: cell[:2])}


def _layout(number: int, topic: str, spot: Spot) -> dict[str, Any]:
    places = spot.layout.shown
    fields = spot.layout.fields
    shown = fields if places is None else [fields[place] for place in places]
    return {"n": number, "topic": topic, "series": [_series(field) for field in shown]}


def _series(field: Field) -> dict[str, str]:
    metric, unit, source, kind, scope, reason, label = field
    return {
        "key": series_key(metric, scope, label),
        "metric": metric,
        "scope": scope,
        "label": label,
        "unit": unit,
        "kind": kind,
        "source": source,
        "reason": translation.gettext(reason) if reason else "",
    }


def _read(spot: Spot, metric: str) -> float | None:
    place = spot.layout.place(metric)
    return None if place is None else spot.numbers[place]


def _encode(message: dict[str, Any]) -> str:
    return _encoder.encode(message).decode()
