"""The group of GPUs over torch's process groups: its messages and sums, here carried by gloo, which
takes the same calls as NCCL; and links of the host for ranks that compute elsewhere."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor
from torch._C import _distributed_c10d as c10d

from engine.device import CPU
from engine.errors import RankError
from engine.parallel import Group, local_place
from engine.parallel.nccl import NcclGroup, StagedGroup
from tests.engine.group_threads import on_members

T = TypeVar("T")
SECONDS = 60.0


def on_gloo(size: int, work: Callable[[Group], T]) -> list[T]:
    gloo: Any = c10d.ProcessGroupGloo
    store = c10d.HashStore()

    def live(rank: int) -> T:
        options = gloo._Options()
        options._devices = [gloo.create_device(hostname="127.0.0.1")]
        options._timeout = timedelta(seconds=SECONDS)
        group = NcclGroup(gloo(store, rank, size, options), rank, size, CPU)
        try:
            return work(group)
        finally:
            group.close()

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(live, range(size), timeout=SECONDS))


def staged(size: int, work: Callable[[Group], T]) -> list[T]:
    return on_members(size, "tcp", lambda group: work(StagedGroup(group, CPU)))


CARRIERS = pytest.mark.parametrize("on", [on_gloo, staged])


@CARRIERS
def test_sums_are_the_same_on_every_member(on: Callable[..., list[Tensor]]) -> None:
    def work(group: Group) -> Tensor:
        return group.all_reduce(torch.full((4, 3), float(group.rank + 1)))

    for total in on(3, work):
        assert torch.equal(total, torch.full((4, 3), 6.0))


@CARRIERS
def test_member_0_gathers_uneven_parts(on: Callable[..., list[list[Tensor] | None]]) -> None:
    shapes = [(2, 3), (2, 5), (2, 1)]

    def work(group: Group) -> list[Tensor] | None:
        return group.gather(torch.full(shapes[group.rank], float(group.rank)), shapes)

    gathered, *others = on(3, work)
    assert others == [None, None]
    assert gathered is not None
    for rank, part in enumerate(gathered):
        assert torch.equal(part, torch.full(shapes[rank], float(rank)))


@CARRIERS
def test_stages_hand_on_and_tokens_reach_all(on: Callable[..., list[list[int]]]) -> None:
    def work(group: Group) -> list[int]:
        if group.rank == 0:
            group.send(torch.ones(2, 4), 1)
            handed = torch.ones(2, 4)
        else:
            handed = group.receive((2, 4), 0)
        assert torch.equal(handed, torch.ones(2, 4))
        own = torch.tensor([7, 8, 9]) if group.rank == 1 else None
        return list(group.broadcast(own, (3,), 1).tolist())

    assert on(2, work) == [[7, 8, 9], [7, 8, 9]]


def test_time_spent_is_kept_and_reset_by_its_reader() -> None:
    def work(group: Group) -> float:
        group.all_reduce(torch.ones(4))
        spent, group.seconds = group.seconds, 0.0
        return spent if group.seconds == 0 else -1.0

    assert min(on_gloo(2, work)) > 0
    assert min(staged(2, work)) > 0


def test_a_failing_collective_is_told_in_a_sentence() -> None:
    class Broken:
        def allreduce(self, _tensors: list[Tensor]) -> None:
            raise RuntimeError("unhandled system error\nNCCL version 2")

    with pytest.raises(RankError, match="its peers: unhandled system error"):
        NcclGroup(Broken(), 0, 2, CPU).all_reduce(torch.ones(1))


def test_ranks_count_those_before_them_on_their_box() -> None:
    boxes = ["a", "b", "a", "a", "b"]
    store = c10d.HashStore()
    with ThreadPoolExecutor(len(boxes)) as pool:
        places = pool.map(
            lambda rank: local_place(store, rank, len(boxes), lambda: boxes[rank]),
            range(len(boxes)),
            timeout=SECONDS,
        )
    assert list(places) == [0, 0, 1, 2, 1]
