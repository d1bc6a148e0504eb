"""Groups of ranks that compute on GPUs: NCCL between the GPUs, or any other group by way of the
host."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import Store

from engine.errors import RankError
from engine.errors import gettext_noop as _
from engine.parallel.activity import ActivityLog
from engine.parallel.group import Group, Timed


def open_nccl(store: Store, rank: int, size: int, seconds: float) -> Any:
    """torch's process group over NCCL, each member on its current GPU."""
    nccl: Any = getattr(c10d, "ProcessGroupNCCL", None)
    if nccl is None:
        raise RankError(
            _(
                "This node's torch was built without NCCL, which joins GPUs; install one with it, "
                "or choose the transport tcp."
            )
        )
    options = nccl.Options()
    options._timeout = timedelta(seconds=seconds)
    return nccl(store, rank, size, options)


class NcclGroup(Timed):
    """Collectives are queued behind what the GPU computes: the host does not wait for them, so
    `seconds` is what it took to queue them.

    Each member of an all-reduce gets the same bits. With more than two members the order of the
    sum may be another for another batch.
    """

    def __init__(
        self,
        group: Any,
        rank: int,
        size: int,
        device: torch.device,
        activity: ActivityLog | None = None,
    ) -> None:
        """`group`: one of torch's process groups; its class is only half typed."""
        super().__init__(rank, size, activity)
        self._group = group
        self._device = device

    def all_reduce(self, x: Tensor) -> Tensor:
        total = x.contiguous()
        with self._timed("all-reduce"), _contact():
            self._group.allreduce([total]).wait()
        return total

    def gather(self, x: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor] | None:
        with self._timed("gather"), _contact():
            if self.rank:
                self._group.send([x.contiguous()], 0, 0).wait()
                return None
            parts = [x]
            for peer in self._peers:
                part = torch.empty(shapes[peer], device=self._device)
                self._group.recv([part], peer, 0).wait()
                parts.append(part)
        return parts

    def send(self, x: Tensor, peer: int) -> None:
        with self._timed("send"), _contact():
            self._group.send([x.contiguous()], peer, 0).wait()

    def receive(self, shape: tuple[int, ...], peer: int) -> Tensor:
        x = torch.empty(shape, device=self._device)
        with self._timed("receive"), _contact():
            self._group.recv([x], peer, 0).wait()
        return x

    def broadcast(self, x: Tensor | None, shape: tuple[int, ...], source: int) -> Tensor:
        """Token ids, from the host to the host."""
        options: Any = c10d.BroadcastOptions()
        options.rootRank, options.rootTensor = source, 0
        with self._timed("receive" if x is None else "send"), _contact():
            if x is None:
                there = torch.empty(shape, dtype=torch.int64, device=self._device)
            else:
                there = x.to(self._device)
            self._group.broadcast([there], options).wait()
            return there.cpu()

    def close(self) -> None:
        """Its connections close with the last reference to it."""
        self._group = None


class StagedGroup:
    """A group whose links know only the host's memory: what goes through it is copied there, and
    what comes out back to the GPU. For boxes without NCCL, and for two ranks on one GPU."""

    def __init__(self, group: Group, device: torch.device) -> None:
        self._group = group
        self._device = device
        self.rank = group.rank
        self.size = group.size

    @property
    def seconds(self) -> float:
        return self._group.seconds

    @seconds.setter
    def seconds(self, value: float) -> None:
        self._group.seconds = value

    def all_reduce(self, x: Tensor) -> Tensor:
        return self._group.all_reduce(x.cpu()).to(self._device)

    def gather(self, x: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor] | None:
        parts = self._group.gather(x.cpu(), shapes)
        return None if parts is None else [part.to(self._device) for part in parts]

    def send(self, x: Tensor, peer: int) -> None:
        self._group.send(x.cpu(), peer)

    def receive(self, shape: tuple[int, ...], peer: int) -> Tensor:
        return self._group.receive(shape, peer).to(self._device)

    def broadcast(self, x: Tensor | None, shape: tuple[int, ...], source: int) -> Tensor:
        """Token ids, from the host to the host."""
        return self._group.broadcast(x, shape, source)

    def close(self) -> None:
        self._group.close()


def local_place(store: Store, rank: int, size: int, machine: Callable[[], str]) -> int:
    """How many of a launch's lower ranks are on this rank's box; every rank asks."""
    store.set(f"machine{rank}", machine())
    machines = [store.get(f"machine{other}") for other in range(size)]
    return sum(other == machines[rank] for other in machines[:rank])


@contextmanager
def _contact() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RankError(
            _("NCCL failed between this rank and its peers: %(reason)s"),
            reason=(str(error).strip().splitlines() or ["it did not say why"])[0],
        ) from error
