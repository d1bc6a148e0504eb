"""Collectives over a group of ranks, and the time they take."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor

from engine.parallel.activity import ActivityLog
from engine.parallel.links import Links
from engine.protocol.steps import Doing


class Group(Protocol):
    """Ranks that compute one thing together. Every member calls the same methods in one order."""

    rank: int
    size: int
    seconds: float
    """Time spent communicating since it was last reset by its reader."""

    def all_reduce(self, x: Tensor) -> Tensor:
        """Sum of every member's `x`; the same bits on each, whatever the batch."""
        ...

    def gather(self, x: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor] | None:
        """Every member's `x` on member 0, None elsewhere; `shapes` are known to all."""
        ...

    def send(self, x: Tensor, peer: int) -> None: ...

    def receive(self, shape: tuple[int, ...], peer: int) -> Tensor: ...

    def broadcast(self, x: Tensor | None, shape: tuple[int, ...], source: int) -> Tensor:
        """Token ids (int64) of member `source` on every member; `x` is None on the others."""
        ...


class Alone:
    """The group of a rank that shares its work with nobody."""

    rank = 0
    size = 1
    seconds = 0.0

    def all_reduce(self, x: Tensor) -> Tensor:
        return x

    def gather(self, x: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor] | None:
        return [x]

    def send(self, x: Tensor, peer: int) -> None:
        raise RuntimeError("A single rank has no peer to send to.")

    def receive(self, shape: tuple[int, ...], peer: int) -> Tensor:
        raise RuntimeError("A single rank has no peer to receive from.")

    def broadcast(self, x: Tensor | None, shape: tuple[int, ...], source: int) -> Tensor:
        if x is None:
            raise RuntimeError("A single rank is the source of its own broadcast.")
        return x


class LinkedGroup:
    """Collectives by direct exchange with every peer.

    The groups here are small and their messages a few kilobytes, so one round of direct exchange
    beats a ring, and summing in rank order gives every member the same bits.
    """

    def __init__(self, links: Links, activity: ActivityLog | None = None) -> None:
        self.rank = links.rank
        self.size = links.size
        self.seconds = 0.0
        self._links = links
        self._activity = activity or ActivityLog()
        self._peers = [peer for peer in range(links.size) if peer != links.rank]

    def all_reduce(self, x: Tensor) -> Tensor:
        with self._timed("all-reduce"):
            parts = {peer: torch.empty_like(x) for peer in self._peers}
            self._links.exchange(dict.fromkeys(self._peers, x), parts)
            parts[self.rank] = x
            total = parts[0] + parts[1]
            for peer in range(2, self.size):
                total += parts[peer]
        return total

    def gather(self, x: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor] | None:
        with self._timed("gather"):
            if self.rank:
                self._links.exchange({0: x}, {})
                return None
            parts = {peer: torch.empty(shapes[peer]) for peer in self._peers}
            self._links.exchange({}, parts)
            return [x, *(parts[peer] for peer in self._peers)]

    def send(self, x: Tensor, peer: int) -> None:
        with self._timed("send"):
            self._links.exchange({peer: x}, {})

    def receive(self, shape: tuple[int, ...], peer: int) -> Tensor:
        with self._timed("receive"):
            x = torch.empty(shape)
            self._links.exchange({}, {peer: x})
        return x

    def broadcast(self, x: Tensor | None, shape: tuple[int, ...], source: int) -> Tensor:
        with self._timed("receive" if x is None else "send"):
            if x is None:
                x = torch.empty(shape, dtype=torch.int64)
                self._links.exchange({}, {source: x})
            else:
                self._links.exchange(dict.fromkeys(self._peers, x), {})
        return x

    @contextmanager
    def _timed(self, doing: Doing) -> Iterator[None]:
        start = time.perf_counter()
        with self._activity.during(doing):
            yield
        self.seconds += time.perf_counter() - start
