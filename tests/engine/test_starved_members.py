"""A group goes on, slowly, on a machine whose cores are all wanted elsewhere."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from engine.parallel import Group
from tests.engine.group_process import numbers
from tests.engine.group_threads import on_members

MEMBERS = 4
COUNTS = [576, 16_384, 262_144] * 10
"""Floats a sum, to 1 MiB."""


@pytest.fixture
def busy_loops() -> Iterator[None]:
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.usefixtures("busy_loops")
def test_four_members_among_busy_loops_agree_on_every_sum() -> None:
    def work(group: Group) -> None:
        for count in COUNTS:
            total = numbers(0, count) + numbers(1, count)
            for rank in range(2, MEMBERS):
                total += numbers(rank, count)
            assert torch.equal(group.all_reduce(numbers(group.rank, count)), total)

    assert on_members(MEMBERS, "shm", work) == [None] * MEMBERS
