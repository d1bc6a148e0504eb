"""When a rank dies, hangs or complains, the head knows which and why, and says so at once."""

import asyncio
from typing import Any

import msgspec
import pytest

from engine.errors import RankError
from engine.head.deadlines import Deadlines
from engine.protocol.framing import pack_frame
from engine.protocol.steps import Doing, Result, StepDone, Timings, encode
from tests.engine.head_world import HeadWorld, Json, head_world, until

QUICK = Deadlines(
    assembling=0.3,
    reassembling=0.3,
    loading=0.3,
    new_step=1.0,
    step=1.0,
    mute=0.6,
    ping=0.2,
    blame=0.1,
)


async def start_held(world: HeadWorld, **body: Any) -> asyncio.Task[Any]:
    """A chat of which a step is on its way and will not be answered."""
    for rank in world.ranks:
        await rank.allow(2)
    asked = world.stream(**body) if body.get("stream") else world.chat(**body)
    task = asyncio.ensure_future(asked)
    await until(lambda: world.ranks[1].received >= 3, "the third step")
    return task


async def test_a_dead_rank_is_named_and_health_says_what_happens() -> None:
    async with head_world() as world:
        chat = await start_held(world, max_tokens=50)
        world.ranks[1].cut()
        fault = await world.fault()
        assert fault.startswith("Rank 1 has gone: its connection closed during step ")
        async with world.http.get("/health") as health:
            assert health.status == 503
            body: Json = await health.json()
        assert body["status"] == "recovering"
        assert body["detail"] == f"{fault} 1 answers wait. Waiting for ranks 0, 1."
        chat.cancel()


async def test_a_head_whose_ranks_do_not_come_back_gives_up_and_the_answer_says_why() -> None:
    async with head_world(deadlines=QUICK) as world:
        chat = await start_held(world, max_tokens=50)
        stream = asyncio.ensure_future(world.stream(max_tokens=50))
        await until(lambda: world.engine.stats().waiting + world.engine.stats().running == 2, "two")
        world.ranks[1].cut()
        error = await world.death()
        status, answer = await chat
        events = await stream
        refused, refusal = await world.chat()
    assert isinstance(error, RankError)
    assert "No connection within 0.3 s from ranks 0, 1." in str(error)
    assert status == 500
    assert answer["error"] == {
        "message": str(error), "type": "server_error", "param": None, "code": "engine_error",
    }  # fmt: skip
    assert events[-1]["error"]["message"] == str(error)
    assert refused == 503
    assert str(error) in refusal["error"]["message"]


async def test_the_rank_that_vanished_is_blamed_before_the_one_that_complains() -> None:
    async with head_world() as world:
        world.ranks[0].fail("Connection closed by peer")
        await until(lambda: bool(world.engine._epoch.group._complaints), "the complaint")
        world.ranks[1].cut()
        assert "Rank 1 has gone" in await world.fault()


async def test_a_complaint_is_passed_on() -> None:
    async with head_world() as world:
        world.ranks[1].fail("This rank ran out of memory.")
        assert await world.fault() == "Rank 1 failed: This rank ran out of memory."


async def test_a_rank_that_falls_silent_in_a_step_is_named_with_what_it_was_at() -> None:
    async with head_world(deadlines=QUICK) as world:
        world.ranks[1].doing = "all-reduce"
        chat = await start_held(world, max_tokens=50)
        pinged = world.ranks[1].pings
        await until(lambda: world.ranks[1].pings > pinged + 1, "a pong from within the step")
        world.ranks[1].deaf = True
        fault = await world.fault()
        chat.cancel()
    assert fault.startswith("Rank 1 stopped answering in all-reduce, layer 0 (")


@pytest.mark.parametrize(
    ("doing", "named"),
    [
        (("all-reduce", "compute"), "rank 1 in step"),
        (("compute", "receive"), "rank 0 in step"),
        (("gather", "all-reduce"), "ranks 0, 1 in step"),
    ],
)
async def test_of_ranks_that_answer_and_get_nowhere_the_one_is_named_that_waits_for_no_other(
    doing: tuple[Doing, Doing], named: str
) -> None:
    async with head_world(deadlines=QUICK) as world:
        for rank, what in zip(world.ranks, doing, strict=True):
            rank.doing = what
        chat = await start_held(world, max_tokens=50)
        fault = await world.fault()
        chat.cancel()
    assert fault.startswith(f"No progress of {named}")


async def test_a_slow_rank_that_answers_pings_is_left_alone() -> None:
    """A busy box may give a rank a tenth of what it had."""
    patient = msgspec.structs.replace(QUICK, new_step=600.0, step=600.0)
    async with head_world(deadlines=patient) as world:
        chat = await start_held(world, max_tokens=20)
        pongs = world.ranks[1].pings + 10
        await until(lambda: world.ranks[1].pings >= pongs, "ten more pings")
        for rank in world.ranks:
            await rank.allow(100)
        status, _ = await chat
        assert not world.engine.recovery.fault
    assert status == 200


async def test_a_rank_that_falls_silent_while_idle_is_named() -> None:
    async with head_world(deadlines=QUICK) as world:
        world.ranks[1].deaf = True
        fault = await world.fault()
    assert fault.startswith("Rank 1 stopped answering while it was idle (")


async def test_ranks_that_never_come_are_named() -> None:
    async with head_world(deadlines=QUICK, ready=False) as world:
        async with world.http.get("/health") as health:
            assert health.status == 503
            assert (await health.json())["detail"] == "Waiting for ranks 0, 1."
        world.add_rank(0)
        error = await world.death()
    assert str(error) == "No connection within 0.3 s from rank 1."


async def test_requests_before_the_model_is_ready_are_503() -> None:
    async with head_world(ready=False) as world:
        status, answer = await world.chat()
    assert status == 503
    assert "Waiting for ranks 0, 1." in answer["error"]["message"]


@pytest.mark.parametrize("tokens", [[], [1, 2]])
async def test_a_result_that_does_not_fit_its_step_ends_the_epoch(tokens: list[int]) -> None:
    async with head_world() as world:
        chat = await start_held(world, max_tokens=50)
        writer = world.ranks[0]._writer
        assert writer is not None
        timings = Timings(0.0, 0.0, 0.0)
        step = world.ranks[0].mirror.expected
        writer.write(pack_frame(encode(Result(step, tokens, [], timings))))
        writer.write(pack_frame(encode(StepDone(step, timings))))
        assert "wrong number of tokens" in await world.fault()
        chat.cancel()
