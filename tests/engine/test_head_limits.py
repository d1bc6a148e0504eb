"""A head can be held to fewer answers at once from outside, by who knows the launch's token."""

import asyncio
from typing import Any

import aiohttp
import msgspec
import pytest

from engine.drivers.base import NoAnswer
from engine.drivers.embedded import EmbeddedDriver
from engine.protocol.launch import ProcessSpec
from tests.engine.head_world import HeadWorld, head_world, until


async def put(world: HeadWorld, body: Any) -> tuple[int, Any]:
    async with world.http.put("/limits", json=body) as answer:
        return answer.status, await answer.json()


def spec_of(world: HeadWorld) -> ProcessSpec:
    return msgspec.structs.replace(world.spec, http=world.front.address)


async def test_the_cap_is_lower_from_the_next_step_on_and_comes_back() -> None:
    async with head_world(max_batch_size=8) as world:
        assert await put(world, {"batch_rows": 2}) == (200, {"batch_rows": 2})
        assert (await world.stats()).batch_cap == 2
        await world.ranks[0].allow(0)
        asked = [asyncio.create_task(world.chat(max_tokens=8)) for _ in range(4)]
        scheduler = world.engine.scheduler
        await until(lambda: scheduler.running + scheduler.waiting == 4, "four requests")
        assert scheduler.running <= 2
        await world.ranks[0].allow(None)
        assert all(status == 200 for status, _ in await asyncio.gather(*asked))
        assert await put(world, {"batch_rows": None}) == (200, {"batch_rows": 8})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"batch_rows": 0},
        {"batch_rows": "few"},
        {"batch_rows": 2.5},
        {"target_itl": 0},
        {"target_itl": "soon"},
        {"max_waiting": 0},
        {"max_waiting": None},
        [],
        None,
    ],
)
async def test_what_is_no_limit_is_refused_and_changes_nothing(body: Any) -> None:
    async with head_world(max_batch_size=8) as world:
        status, answer = await put(world, body)
        assert status == 400
        assert answer["error"]["message"]
        assert (await world.stats()).batch_cap == 8


async def test_a_target_and_a_queue_length_are_taken_while_it_runs() -> None:
    async with head_world(max_batch_size=8) as world:
        scheduler = world.engine.scheduler
        assert not scheduler.cap.moves
        status, _answer = await put(world, {"target_itl": 0.05, "max_waiting": 1})
        assert status == 200
        assert scheduler.cap.moves
        await world.ranks[0].allow(0)
        asked = []
        while scheduler.waiting == 0:
            asked.append(asyncio.create_task(world.chat(max_tokens=2)))
            await until(lambda: scheduler.running + scheduler.waiting == len(asked), "one more")
        assert (await world.chat(max_tokens=2))[0] == 503
        await world.ranks[0].allow(None)
        assert all(status == 200 for status, _ in await asyncio.gather(*asked))
        assert await put(world, {"target_itl": None}) == (200, {"batch_rows": 8})
        assert not scheduler.cap.moves


async def test_a_stranger_holds_nothing_back() -> None:
    async with head_world(max_batch_size=8) as world:
        async with (
            aiohttp.ClientSession(world.url) as stranger,
            stranger.put("/limits", json={"batch_rows": 1}) as answer,
        ):
            assert answer.status == 401
        assert (await world.stats()).batch_cap == 8


async def test_an_agent_sets_it_through_the_driver() -> None:
    async with head_world(max_batch_size=8) as world:
        driver, spec = EmbeddedDriver(), spec_of(world)
        async with aiohttp.ClientSession() as http:
            assert await driver.hold_batch(http, spec, 3) == 3
            assert (await world.stats()).batch_cap == 3
            assert await driver.hold_batch(http, spec, None) == 8
            with pytest.raises(NoAnswer, match="refuses"):
                await driver.hold_batch(http, spec, 0)
    async with aiohttp.ClientSession() as http:
        with pytest.raises(NoAnswer, match="does not answer"):
            await driver.hold_batch(http, spec, 3)
