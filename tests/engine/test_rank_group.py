"""The ranks of one epoch, at the moments when two things happen at once."""

import asyncio
from unittest.mock import create_autospec

import pytest

from engine.config import ParallelPlan
from engine.head.deadlines import Deadlines
from engine.head.group import RankGroup
from engine.protocol.steps import PROTOCOL_VERSION, Hello


def make_group(deadlines: Deadlines) -> RankGroup:
    return RankGroup(ParallelPlan(tp=2), deadlines, lambda _peer, _message: None)


def knock(group: RankGroup, rank: int, pid: int) -> tuple[asyncio.Task[None], asyncio.StreamReader]:
    """A rank that was let in, and what it is heard through."""
    writer, reader = create_autospec(asyncio.StreamWriter), asyncio.StreamReader()
    peer = group.admit(Hello(PROTOCOL_VERSION, "l1", "token", rank, pid), writer)
    return asyncio.create_task(group.follow(peer, reader)), reader


@pytest.mark.parametrize("turns", range(4))
async def test_whoever_waits_for_ranks_can_be_stopped_while_one_speaks(turns: int) -> None:
    group = make_group(Deadlines())
    waiting = asyncio.create_task(group.gather(20.0))
    await asyncio.sleep(0.01)
    follow, _reader = knock(group, rank=0, pid=1)
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting.cancel()
    done, _late = await asyncio.wait({waiting}, timeout=1.0)
    follow.cancel()
    assert done
    assert waiting.cancelled()


async def test_the_end_of_a_connection_that_was_replaced_is_no_fault() -> None:
    group = make_group(Deadlines(blame=0.01))
    old, old_reader = knock(group, rank=0, pid=1)
    tasks = [old, knock(group, rank=0, pid=2)[0], knock(group, rank=1, pid=3)[0]]
    watch, load = asyncio.create_task(group.watch()), asyncio.create_task(group.load(0))
    await asyncio.sleep(0)
    old_reader.feed_eof()
    done, _ = await asyncio.wait({watch}, timeout=0.1)
    for task in (*tasks, load, watch):
        task.cancel()
    assert not done
    assert old.done()
