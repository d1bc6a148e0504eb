"""Answers go on where they were when the ranks come back; nothing is lost, nothing repeated."""

import asyncio
from typing import Any

import msgspec

from engine.errors import RankError
from engine.head.deadlines import Deadlines
from tests.engine.head_world import ASK, MODEL, HeadWorld, Json, head_world, text_of, until

SOON = Deadlines(mute=0.6, ping=0.2, blame=0.05, backing_off=(0.0, 0.01, 0.01))


async def hold(world: HeadWorld, steps: int = 3) -> None:
    for rank in world.ranks:
        await rank.allow(steps)


async def held_stream(world: HeadWorld, **body: Any) -> asyncio.Task[list[Json]]:
    """A stream that has said something, and of which no more comes."""
    await hold(world)
    task = asyncio.ensure_future(world.stream(**body))
    await until(lambda: world.ranks[0].answered >= 3, "three steps")
    return task


async def undisturbed(world: HeadWorld, count: int) -> str:
    _, whole = await world.chat(max_tokens=count)
    text: str = whole["choices"][0]["message"]["content"]
    return text


async def until_epoch(world: HeadWorld, epoch: int) -> None:
    await until(lambda: world.engine.recovery.epoch >= epoch, f"epoch {epoch}")
    await until(lambda: world.engine.status == "ready", "being ready again")


async def test_a_stream_goes_on_after_a_rank_died() -> None:
    async with head_world(deadlines=SOON) as world:
        world.mending = True
        expected = await undisturbed(world, 40)
        before = await world.stats()
        stream = await held_stream(world, max_tokens=40)
        world.ranks[1].cut()
        events = await stream
        stats = await world.stats()
    assert text_of(events) == expected
    assert (stats.epoch, stats.status, stats.resumed) == (1, "ready", 1)
    assert stats.generated_tokens - before.generated_tokens == 40
    assert stats.kv_blocks_used == 0
    assert stats.recovery_seconds is not None
    assert str(stats.last_fault).startswith("Rank 1 has gone")


async def test_the_ranks_tell_their_bubble_and_what_their_experts_do() -> None:
    async with head_world(deadlines=SOON) as world:
        for rank in world.ranks:
            rank.expert_tokens = (5, 7)
        await world.chat(max_tokens=10)
        await until(lambda: bool(world.engine.stats().expert_tokens), "the next pong")
        stats = await world.stats()
        async with world.http.get("/metrics") as answer:
            metrics = await answer.text()
    assert stats.expert_tokens == (10, 14), "two stages' worth"
    assert stats.bubble == 0, "the fake ranks have no idle time"
    assert 'tandem_expert_tokens_total{expert="1",model_name="small"} 14.0' in metrics


async def test_the_stream_says_that_it_was_paused_and_resumed() -> None:
    async with head_world(deadlines=SOON) as world:
        world.mending = True
        await hold(world)
        body = {"model": MODEL, "stream": True} | ASK | {"max_tokens": 20}
        async with world.http.post("/v1/chat/completions", json=body) as answer:
            await until(lambda: world.ranks[0].answered >= 3, "three steps")
            world.ranks[0].cut()
            lines = [line.strip() async for line in answer.content]
    comments = [line for line in lines if line in (b": paused", b": resumed")]
    assert comments[0] == b": paused"
    assert comments[-1] == b": resumed"


async def test_a_rank_that_is_stopped_is_replaced_too() -> None:
    async with head_world(deadlines=SOON) as world:
        world.mending = True
        expected = await undisturbed(world, 40)
        stream = await held_stream(world, max_tokens=40)
        world.ranks[1].deaf = True
        assert text_of(await stream) == expected


async def test_two_faults_in_a_row_the_second_while_the_ranks_load() -> None:
    async with head_world(deadlines=SOON) as world:
        world.mending = True
        expected = await undisturbed(world, 40)
        stream = await held_stream(world, max_tokens=40)
        world.short_lived = True
        world.ranks[1].cut()
        await until(lambda: world.engine.recovery.epoch >= 2, "the second fault")
        world.short_lived = False
        assert text_of(await stream) == expected
        assert str(world.engine.recovery.fault).endswith(
            "while it was waiting for the others to load."
        )


async def test_a_request_that_comes_while_the_ranks_are_away_is_answered_later() -> None:
    async with head_world(deadlines=SOON) as world:
        expected = await undisturbed(world, 10)
        world.ranks[1].cut()
        await world.fault()
        chat = asyncio.ensure_future(world.chat(max_tokens=10))
        await until(lambda: world.engine.scheduler.waiting == 1, "waiting")
        assert world.engine.status == "recovering"
        for rank in range(2):
            world.add_rank(rank)
        status, answer = await chat
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == expected


async def test_one_who_leaves_while_the_ranks_are_away_is_forgotten() -> None:
    async with head_world(deadlines=SOON) as world:
        world.ranks[1].cut()
        await world.fault()
        chat = asyncio.ensure_future(world.chat(max_tokens=10))
        await until(lambda: world.engine.scheduler.waiting == 1, "waiting")
        chat.cancel()
        await until(lambda: world.engine.scheduler.waiting == 0, "being forgotten")


async def test_a_request_that_kills_every_rank_it_meets_is_ended_and_the_others_go_on() -> None:
    patient = msgspec.structs.replace(SOON, backing_off=(0.0,) * 8)
    async with head_world(deadlines=patient) as world:
        world.mending = True
        killed = 0

        async def die_of_steps() -> None:
            nonlocal killed
            while killed < 3:
                await until(lambda: world.ranks[1].received > 0, "a step")
                world.ranks[1].cut()
                killed += 1
                await until_epoch(world, killed)

        await hold(world, 0)
        world.hold_new = True
        deaths = asyncio.ensure_future(die_of_steps())
        status, answer = await world.chat(max_tokens=10)
        await deaths
        for rank in world.ranks:
            rank.holding = False
        again, _ = await world.chat(max_tokens=10)
    assert status == 500
    assert "failed 3 times in a row" in answer["error"]["message"]
    assert again == 200


async def test_ranks_that_die_at_every_start_make_the_head_give_up() -> None:
    async with head_world(deadlines=SOON) as world:
        world.mending = True
        stream = await held_stream(world, max_tokens=40)
        world.short_lived = True
        world.ranks[1].cut()
        error = await world.death()
        events = await stream
    assert isinstance(error, RankError)
    assert str(error).startswith("The ranks were started 4 times and failed each time. Rank ")
    assert events[-1]["error"]["message"] == str(error)


async def test_a_rank_lost_before_the_first_answer_is_waited_for() -> None:
    async with head_world(deadlines=SOON, ready=False) as world:
        world.mending = True
        for rank in range(2):
            await world.add_rank(rank).allow(0)
        await until(lambda: world.ranks[1].received >= 1, "the rehearsal")
        world.ranks[1].cut()
        await until_epoch(world, 1)
        status, _ = await world.chat()
    assert status == 200


async def test_a_canary_sings_when_nobody_asks_and_counts_nowhere() -> None:
    quick = msgspec.structs.replace(SOON, resting=0.05)
    async with head_world(deadlines=quick) as world:
        await until(lambda: world.engine.probe.seconds is not None, "a token")
        stats = await world.stats()
    assert (stats.steps, stats.prompt_tokens, stats.generated_tokens) == (0, 0, 0)
    assert (stats.finished, stats.aborted, stats.running) == (0, 0, 0)
    assert stats.canary_seconds is not None


async def test_a_canary_that_is_still_on_its_way_counts_nowhere_either() -> None:
    quick = msgspec.structs.replace(SOON, resting=0.05, canary=30.0)
    async with head_world(deadlines=quick) as world:
        await hold(world, 0)
        await until(lambda: world.engine.scheduler.counters.prompt_tokens > 0, "a canary")
        stats = await world.stats()
    assert (stats.steps, stats.prompt_tokens, stats.generated_tokens) == (0, 0, 0)


async def test_a_canary_that_does_not_sing_ends_the_epoch() -> None:
    quick = msgspec.structs.replace(SOON, resting=0.05, canary=0.2)
    async with head_world(deadlines=quick) as world:
        world.mending = True
        await hold(world, 0)
        fault = await world.fault()
        await until_epoch(world, 1)
    assert fault == "An idle engine drew no token within 0.2 s."
