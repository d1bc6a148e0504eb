"""Messages between members arrive whole and in order, whatever their size and what carries them."""

import pytest
import torch
from torch import Tensor

from engine.config import Transport
from engine.parallel import Group
from tests.engine.group_process import numbers
from tests.engine.group_threads import on_members

CARRIERS: list[Transport] = ["shm", "tcp", "gloo"]
RING = 4 << 20
"""Bytes of shared memory from one member to another."""


@pytest.mark.parametrize("transport", CARRIERS)
def test_messages_keep_their_order_and_their_shape(transport: Transport) -> None:
    shapes = [(1, 576), (8, 576), (256, 576), (3, 5), (1, RING // 4 + 9), (2, 2)]

    def work(group: Group) -> list[Tensor]:
        if group.rank == 0:
            for shape in shapes:
                group.send(numbers(7, shape[0] * shape[1]).view(shape), 1)
            return []
        return [group.receive(shape, 0) for shape in shapes]

    for shape, got in zip(shapes, on_members(2, transport, work)[1], strict=True):
        assert torch.equal(got, numbers(7, shape[0] * shape[1]).view(shape))


def test_a_sender_does_not_wait_for_its_receiver() -> None:
    """Two thirds of the ring are filled before anything is taken out, many times around."""
    count, rounds = RING // 4 // 12, 9

    def work(group: Group) -> list[Tensor]:
        got: list[Tensor] = []
        for turn in range(rounds):
            if group.rank == 0:
                for number in range(8):
                    group.send(numbers(turn, count) + number, 1)
                group.receive((1,), 1)
            else:
                # Asked for only once all was sent: the other waits for this one's word by then.
                got += [group.receive((count,), 0) for _ in range(8)]
                group.send(torch.ones(1), 0)
        return got

    got = on_members(2, "shm", work)[1]
    for place, x in enumerate(got):
        assert torch.equal(x, numbers(place // 8, count) + place % 8)


@pytest.mark.parametrize("transport", CARRIERS)
def test_member_0_gathers_uneven_parts(transport: Transport) -> None:
    shapes = [(3, 1000), (3, 17), (3, 40_000)]

    def work(group: Group) -> list[Tensor] | None:
        mine = shapes[group.rank]
        return group.gather(numbers(group.rank, mine[0] * mine[1]).view(mine), shapes)

    gathered, *others = on_members(3, transport, work)
    assert others == [None, None]
    assert gathered is not None
    for rank, (part, shape) in enumerate(zip(gathered, shapes, strict=True)):
        assert torch.equal(part, numbers(rank, shape[0] * shape[1]).view(shape))


@pytest.mark.parametrize("transport", CARRIERS)
@pytest.mark.parametrize("source", [0, 2])
def test_token_ids_reach_every_member(transport: Transport, source: int) -> None:
    ids = torch.tensor([3, 2**40, 49_151])

    def work(group: Group) -> Tensor:
        return group.broadcast(ids if group.rank == source else None, (3,), source)

    for got in on_members(3, transport, work):
        assert torch.equal(got, ids)
