"""Collectives over a group of ranks, and the time they take."""

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

    def close(self) -> None:
        """Leave the group; to the others it looks as if this process had ended."""
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

    def close(self) -> None:
        pass


class Timed:
    """What groups with peers have in common: who they are, and what their exchanges take."""

    def __init__(self, rank: int, size: int, activity: ActivityLog | None) -> None:
        self.rank = rank
        self.size = size
        self.seconds = 0.0
        self._activity = activity or ActivityLog()
        self._peers = [peer for peer in range(size) if peer != rank]

    @contextmanager
    def _timed(self, doing: Doing) -> Iterator[None]:
        log = self._activity
        before, layer = log.doing, log.layer
        log.at(doing, layer)
        began = log.since
        yield
        # What raised stays in the log: it is what went wrong.
        log.at(before, layer)
        self.seconds += log.since - began


class LinkedGroup(Timed):
    """Collectives by direct exchange with every peer.

    The groups here are small and their messages a few kilobytes, so one round of direct exchange
    beats a ring, and summing in rank order gives every member the same bits.
    """

    def __init__(self, links: Links, activity: ActivityLog | None = None) -> None:
        super().__init__(links.rank, links.size, activity)
        self._links = links

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

    def close(self) -> None:
        self._links.close()
