"""Sums over shared memory have the same bits as those over sockets, on every member."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.config import Transport
from engine.parallel import Group
from tests.engine.group_process import numbers
from tests.engine.group_threads import on_members

SLOT = (64 << 10) // 4
"""Floats that go over at once."""


def sums(size: int, transport: Transport, counts: list[int]) -> list[list[Tensor]]:
    def work(group: Group) -> list[Tensor]:
        return [group.all_reduce(numbers(group.rank, count)) for count in counts]

    return on_members(size, transport, work)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_member_gets_the_bits_that_sockets_give(size: int) -> None:
    counts = [1, 576, SLOT - 1, SLOT, SLOT + 1, 2 * SLOT, (1 << 20) // 4, 3 * SLOT + 7]
    shared, linked = sums(size, "shm", counts), sums(size, "tcp", counts)
    for member in range(size):
        assert all(map(torch.equal, shared[member], linked[0]))


@settings(max_examples=15, deadline=None)
@given(
    size=st.integers(2, 4),
    counts=st.lists(st.integers(0, 3 * SLOT), min_size=1, max_size=6),
)
def test_any_sizes_in_any_order(size: int, counts: list[int]) -> None:
    for member in sums(size, "shm", counts):
        for count, total in zip(counts, member, strict=True):
            parts = [numbers(rank, count) for rank in range(size)]
            expected = parts[0] + parts[1]
            for part in parts[2:]:
                expected += part
            assert torch.equal(total, expected)


def test_a_table_with_gaps_between_its_rows_is_summed_as_it_reads() -> None:
    def work(group: Group) -> Tensor:
        return group.all_reduce(torch.arange(12.0).view(4, 3).t() * (group.rank + 1))

    for total in on_members(2, "shm", work):
        assert torch.equal(total, torch.arange(12.0).view(4, 3).t() * 3)


def test_other_numbers_than_floats_are_refused() -> None:
    def work(group: Group) -> str:
        with pytest.raises(TypeError, match="float32"):
            group.all_reduce(torch.ones(3, dtype=torch.float64))
        return "refused"

    assert on_members(2, "shm", work) == ["refused", "refused"]
