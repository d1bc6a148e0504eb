"""Ranks as threads of the test: real collectives, no processes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import TypeVar

from torch import Tensor

from engine.config import ParallelPlan
from engine.parallel import Alone, Mesh
from engine.parallel.group import Group, LinkedGroup

SECONDS = 30.0

T = TypeVar("T")


class QueueLinks:
    """Links between threads; `mail` has one queue for each (sender, receiver)."""

    name = "queue"

    def __init__(self, rank: int, size: int, mail: dict[tuple[int, int], "Queue[Tensor]"]) -> None:
        self.rank = rank
        self.size = size
        self._mail = mail

    def exchange(self, outgoing: dict[int, Tensor], incoming: dict[int, Tensor]) -> None:
        for peer, tensor in outgoing.items():
            self._mail[self.rank, peer].put(tensor.clone())
        for peer, tensor in incoming.items():
            tensor.copy_(self._mail[peer, self.rank].get(timeout=SECONDS))

    def close(self) -> None:
        pass


def linked_groups(size: int) -> list[Group]:
    """One group of `size` ranks, as each of its members sees it."""
    if size == 1:
        return [Alone()]
    mail: dict[tuple[int, int], Queue[Tensor]] = {
        (sender, receiver): Queue() for sender in range(size) for receiver in range(size)
    }
    return [LinkedGroup(QueueLinks(rank, size, mail)) for rank in range(size)]


def linked_meshes(plan: ParallelPlan) -> list[Mesh]:
    """Of every rank of a plan, in rank order."""
    stages = [linked_groups(plan.width) for _stage in range(plan.pp)]
    pipelines = [linked_groups(plan.pp) for _place in range(plan.width)]
    return [
        Mesh(stages[stage][place], pipelines[place][stage], "queue")
        for stage in range(plan.pp)
        for place in range(plan.width)
    ]


def on_every_rank(size: int, work: Callable[[Group], T]) -> list[T]:
    """What `work` answers on each rank of one group, in rank order."""
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(work, linked_groups(size), timeout=SECONDS))
