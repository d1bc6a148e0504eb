"""A group of ranks on one host, over memory that they share.

The memory is an unnamed file, handed from member 0 to the others over sockets that stay open: the
kernel closes them with the process, so a peer's death is seen, and nothing is left to clean up
whichever way a process ends.
"""

import ctypes
import mmap
import socket
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.errors import RankError
from engine.errors import gettext_noop as _
from engine.parallel.activity import ActivityLog
from engine.parallel.group import Timed

_GONE = 1


class SharedMemory:
    """Memory and sockets of one member, and the collectives over them.

    Every call raises RankError when a peer it waits for is gone, or silent for `seconds`.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        memory: mmap.mmap,
        sockets: dict[int, socket.socket],
        rank: int,
        seconds: float,
    ) -> None:
        self.rank = rank
        self.size = len(sockets) + 1
        self._seconds = seconds
        self._library = library
        self._memory = memory
        self._sockets = sockets
        numbers = [sockets[peer].fileno() if peer in sockets else -1 for peer in range(self.size)]
        self._numbers = (ctypes.c_int * self.size)(*numbers)
        self._culprit = ctypes.c_uint32()
        self._culprit_at = ctypes.addressof(self._culprit)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self._state = ctypes.create_string_buffer(library.tandem_state_bytes())
        self._group = ctypes.addressof(self._state)
        library.tandem_open(self._group, base, rank, self.size, self._numbers, seconds)

    def sum(self, x: Tensor) -> Tensor:
        """Of every member's float32 `x`, added in rank order."""
        if x.dtype != torch.float32:
            raise TypeError(f"Sums are of float32, not {x.dtype}.")
        x = x.contiguous()
        total = torch.empty_like(x)
        outcome = self._library.tandem_sum(
            self._group, x.data_ptr(), total.data_ptr(), x.numel(), self._culprit_at
        )
        if outcome:
            raise self._lost(outcome, self._culprit.value)
        return total

    def put(self, x: Tensor, peer: int) -> None:
        """Into the ring to `peer`; waits only while that is full."""
        x = x.contiguous()
        outcome = self._library.tandem_put(self._group, peer, x.data_ptr(), x.nbytes)
        if outcome:
            raise self._lost(outcome, peer)

    def take(self, x: Tensor, peer: int) -> Tensor:
        """Fills `x`, which is contiguous, with what `peer` put."""
        outcome = self._library.tandem_take(self._group, peer, x.data_ptr(), x.nbytes)
        if outcome:
            raise self._lost(outcome, peer)
        return x

    def close(self) -> None:
        for sock in self._sockets.values():
            sock.close()

    def _lost(self, outcome: int, peer: int) -> RankError:
        if outcome == _GONE:
            return RankError(_("Lost the connection to peer %(peer)s of the group."), peer=peer)
        return RankError(
            _("Peer %(silent)s of the group was silent for %(seconds)s s."),
            silent=peer,
            seconds=round(self._seconds, 1),
        )


class ShmGroup(Timed):
    """One copy into shared memory and one flag an exchange; sums are made from where they lie."""

    def __init__(self, memory: SharedMemory, activity: ActivityLog | None = None) -> None:
        super().__init__(memory.rank, memory.size, activity)
        self._memory = memory

    def all_reduce(self, x: Tensor) -> Tensor:
        with self._timed("all-reduce"):
            return self._memory.sum(x)

    def gather(self, x: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor] | None:
        with self._timed("gather"):
            if self.rank:
                self._memory.put(x, 0)
                return None
            return [x, *(self._memory.take(torch.empty(shapes[it]), it) for it in self._peers)]

    def send(self, x: Tensor, peer: int) -> None:
        with self._timed("send"):
            self._memory.put(x, peer)

    def receive(self, shape: tuple[int, ...], peer: int) -> Tensor:
        with self._timed("receive"):
            return self._memory.take(torch.empty(shape), peer)

    def broadcast(self, x: Tensor | None, shape: tuple[int, ...], source: int) -> Tensor:
        with self._timed("receive" if x is None else "send"):
            if x is None:
                return self._memory.take(torch.empty(shape, dtype=torch.int64), source)
            for peer in self._peers:
                self._memory.put(x, peer)
            return x

    def close(self) -> None:
        self._memory.close()
