"""A client that leaves frees its blocks within one step, streaming or not."""

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.engine.head_world import ASK, MODEL, HeadWorld, head_world, read_events, until


async def leave_midway(world: HeadWorld, body: dict[str, Any]) -> None:
    """Start a request, let a few steps pass, then hang up while a step is on its way."""
    await world.ranks[0].allow(4)
    post = world.http.post("/v1/chat/completions", json={"model": MODEL} | ASK | body)
    if body.get("stream"):
        async with post as answer:
            events = read_events(answer)
            await anext(events)
            await until(lambda: world.ranks[0].received >= 5, "the fifth step")
            answer.close()
    else:
        task = asyncio.ensure_future(post)
        await until(lambda: world.ranks[0].received >= 5, "the fifth step")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def check(world: HeadWorld, body: dict[str, Any]) -> None:
    assert world.engine.scheduler.pool.used == 0
    await leave_midway(world, body)
    await until(lambda: world.engine.scheduler.counters.aborted == 1, "the abort")
    assert world.engine.scheduler.pool.used == 0
    assert world.engine.scheduler.running == 0
    await world.ranks[0].allow(None)
    steps = world.ranks[0].received
    status, _ = await world.chat()
    assert status == 200
    assert world.ranks[0].received - steps == ASK["max_tokens"], "no step went to the lost one"
    world.engine.scheduler.audit()
    assert world.engine.scheduler.pool.used == 0


@pytest.mark.hazard("disconnect")
async def test_leaving_a_stream() -> None:
    async with head_world() as world:
        await check(world, {"stream": True, "max_tokens": 500})


@pytest.mark.hazard("disconnect")
async def test_leaving_before_a_whole_answer() -> None:
    async with head_world() as world:
        await check(world, {"stream": False, "max_tokens": 500})


@pytest.mark.hazard("disconnect-session")
async def test_leaving_while_queued() -> None:
    async with head_world(max_batch_size=1, token_budget=64) as world:
        await world.ranks[0].allow(2)
        first = asyncio.create_task(world.chat(max_tokens=30))
        await until(lambda: world.engine.scheduler.running == 1, "the first request")
        second = asyncio.create_task(world.chat(max_tokens=30))
        await until(lambda: world.engine.scheduler.waiting == 1, "the second request")
        second.cancel()
        await until(lambda: world.engine.scheduler.waiting == 0, "the abort")
        await world.ranks[0].allow(None)
        status, _ = await first
    assert status == 200


@pytest.mark.hazard("disconnect-session")
async def test_a_burst_of_leaving_clients_leaves_nothing_behind() -> None:
    async with head_world(max_batch_size=4, token_budget=64) as world:
        tasks = [asyncio.create_task(world.stream(max_tokens=2000)) for _ in range(20)]
        await until(lambda: world.engine.scheduler.running == 4, "a full batch")
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(r, asyncio.CancelledError | aiohttp.ClientError) for r in results)
        await until(lambda: world.engine.scheduler.running == 0, "all aborts")
        await until(lambda: world.engine.scheduler.in_flight == 0, "the last step")
        assert world.engine.scheduler.waiting == 0
        assert world.engine.scheduler.pool.used == 0
        world.engine.scheduler.audit()
