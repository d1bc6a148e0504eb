"""When a rank dies, hangs or complains, everyone is told why, and the launch is over."""

import asyncio
from typing import Any

import msgspec
import pytest

from engine.errors import DeadlineError, RankError
from engine.head.deadlines import Deadlines
from engine.protocol.framing import pack_frame
from engine.protocol.steps import Result, StepDone, Timings, encode
from tests.engine.head_world import HeadWorld, Json, head_world, until

QUICK = Deadlines(
    assembling=0.3,
    loading=0.3,
    new_step=1.0,
    step=1.0,
    mute=0.6,
    silence=0.5,
    ping=0.2,
    blame=0.1,
)


THIRD = 4
"""Number of a first request's third step: a rehearsal took two."""


async def start_held(world: HeadWorld, **body: Any) -> asyncio.Task[Any]:
    """A chat whose third step is on its way and will not be answered."""
    await world.ranks[1].allow(2)
    await world.ranks[0].allow(2)
    asked = world.stream(**body) if body.get("stream") else world.chat(**body)
    task = asyncio.ensure_future(asked)
    await until(lambda: world.ranks[1].received >= 3, "the third step")
    return task


async def test_a_dead_rank_is_named_and_the_answer_fails_with_the_reason() -> None:
    async with head_world() as world:
        chat = await start_held(world, max_tokens=50)
        world.ranks[1].cut()
        status, answer = await chat
        error = await world.death()
        assert str(error) == f"Rank 1 has gone: its connection closed during step {THIRD}."
        assert isinstance(error, RankError)
        assert status == 500
        assert answer["error"] == {
            "message": str(error), "type": "server_error", "param": None, "code": "engine_error",
        }  # fmt: skip
        status, answer = await world.chat()
        assert status == 503
        assert str(error) in answer["error"]["message"]
        async with world.http.get("/health") as health:
            assert health.status == 503
            body: Json = await health.json()
            assert (body["status"], body["detail"]) == ("failed", str(error))


async def test_an_open_stream_ends_with_an_error_event() -> None:
    async with head_world() as world:
        stream = await start_held(world, max_tokens=50, stream=True)
        world.ranks[1].cut()
        events = await stream
        error = await world.death()
    assert events[-1]["error"]["message"] == str(error)
    assert events[-2]["choices"][0]["finish_reason"] is None


async def test_the_rank_that_vanished_is_blamed_before_the_one_that_complains() -> None:
    async with head_world() as world:
        world.ranks[0].fail("Connection closed by peer")
        await until(lambda: bool(world.engine._group._complaints), "the complaint")
        world.ranks[1].cut()
        assert "Rank 1 has gone" in str(await world.death())


async def test_a_complaint_is_passed_on() -> None:
    async with head_world() as world:
        world.ranks[1].fail("This rank ran out of memory.")
        assert str(await world.death()) == "Rank 1 failed: This rank ran out of memory."


@pytest.mark.parametrize(("deaf", "named"), [(True, "rank 1"), (False, "ranks 0, 1")])
async def test_a_rank_that_hangs_in_a_step_is_named(deaf: bool, named: str) -> None:
    """One that does not even answer pings is blamed before one that only waits for it."""
    async with head_world(deadlines=QUICK) as world:
        chat = await start_held(world, max_tokens=50)
        world.ranks[1].deaf = deaf
        error = await world.death()
        status, _ = await chat
    assert isinstance(error, DeadlineError)
    assert str(error).startswith(f"No answer from {named} during step {THIRD} (")
    assert status == 500


async def test_a_mute_rank_is_found_however_long_its_step_may_take() -> None:
    patient = msgspec.structs.replace(QUICK, new_step=600.0, step=600.0)
    async with head_world(deadlines=patient) as world:
        chat = await start_held(world, max_tokens=50)
        world.ranks[1].deaf = True
        assert str(await world.death()).startswith(f"No answer from rank 1 during step {THIRD} (")
        await chat


async def test_a_slow_rank_that_answers_pings_is_left_alone() -> None:
    """A busy box may give a rank a tenth of what it had."""
    patient = msgspec.structs.replace(QUICK, new_step=600.0, step=600.0, mute=0.5)
    async with head_world(deadlines=patient) as world:
        chat = await start_held(world, max_tokens=20)
        pongs = world.ranks[1].pings + 10
        await until(lambda: world.ranks[1].pings >= pongs, "ten more pings")
        for rank in world.ranks:
            await rank.allow(100)
        status, _ = await chat
    assert status == 200


async def test_a_rank_that_falls_silent_while_idle_is_named() -> None:
    async with head_world(deadlines=QUICK) as world:
        world.ranks[1].deaf = True
        error = await world.death()
    assert str(error).startswith("Rank 1 stopped answering while it was idle (")


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
async def test_a_result_that_does_not_fit_its_step_ends_the_launch(tokens: list[int]) -> None:
    async with head_world() as world:
        chat = await start_held(world, max_tokens=50)
        writer = world.ranks[0]._writer
        assert writer is not None
        timings = Timings(0.0, 0.0, 0.0)
        writer.write(pack_frame(encode(Result(THIRD, tokens, [], timings))))
        writer.write(pack_frame(encode(StepDone(THIRD, timings))))
        assert "wrong number of tokens" in str(await world.death())
        status, _ = await chat
    assert status == 500
