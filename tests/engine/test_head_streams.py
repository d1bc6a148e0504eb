"""What a head keeps of a stream whose reader is gone, and for how long."""

import json

import pytest

from engine.head.api import streams
from tests.engine.cut_streams import CHAT, events_of, journaled, request, visible
from tests.engine.head_world import HeadWorld, head_world, text_of, until


async def lose(world: HeadWorld, stream: str) -> None:
    """A reader that vanishes without a word after the first event."""
    await world.ranks[0].allow(6)
    asked = request(CHAT, {"max_tokens": 30})
    async with world.http.post(CHAT, json=asked, headers=journaled(stream)) as answer:
        await answer.content.readuntil(b"\n\n")
        answer.close()


async def test_an_answer_goes_on_with_nobody_listening() -> None:
    async with head_world() as world:
        await lose(world, "s")
        await world.ranks[0].allow(None)
        await until(lambda: world.engine.scheduler.counters.finished == 1, "the end")
        again = await events_of(world, "/streams/s", {}, "s", method="GET")
        rest = await events_of(world, "/streams/s?sent=5", {}, "s", method="GET")
    assert visible(again)[5:] == visible(rest)
    assert text_of([json.loads(event.partition("data: ")[2]) for event in again[:-1]])


@pytest.mark.hazard("disconnect")
async def test_it_ends_when_nobody_comes_back_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "GRACE_SECONDS", 0.05)
    async with head_world() as world:
        await lose(world, "s")
        await until(lambda: world.engine.scheduler.counters.aborted == 1, "the abort")
        assert world.engine.scheduler.pool.used == 0
        async with world.http.get("/streams/s") as answer:
            assert answer.status == 404


@pytest.mark.hazard("disconnect")
async def test_whoever_says_so_ends_it_at_once() -> None:
    async with head_world() as world:
        await lose(world, "s")
        async with world.http.delete("/streams/s") as answer:
            assert answer.status == 204
        assert world.engine.scheduler.counters.aborted == 1
        assert world.engine.scheduler.pool.used == 0
        async with world.http.delete("/streams/s") as answer:
            assert answer.status == 404


async def test_a_reader_that_was_succeeded_ends_nothing() -> None:
    async with head_world() as world:
        await lose(world, "s")
        names = [{"X-Tandem-Reader": name} for name in ("first", "second")]
        async with world.http.get("/streams/s", headers=names[1]):
            async with world.http.delete("/streams/s", headers=names[0]) as answer:
                assert answer.status == 204
            assert world.engine.scheduler.counters.aborted == 0
            async with world.http.delete("/streams/s", headers=names[1]) as answer:
                assert answer.status == 204
        assert world.engine.scheduler.counters.aborted == 1


async def test_a_stream_that_is_read_is_no_orphan() -> None:
    async with head_world() as world:
        await world.ranks[0].allow(6)
        asked = request(CHAT, {"max_tokens": 30})
        async with world.http.post(CHAT, json=asked, headers=journaled("s")) as answer:
            await answer.content.readuntil(b"\n\n")
            async with world.http.get("/streams/s?orphan=1") as refusal:
                assert refusal.status == 409
            await world.ranks[0].allow(None)
            assert (await answer.text()).endswith("data: [DONE]\n\n")


async def test_only_so_many_complete_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_ENDED", 2)
    async with head_world() as world:
        for number in range(4):
            await events_of(world, CHAT, request(CHAT, {"max_tokens": 2}), f"s{number}")
        found = []
        for number in range(4):
            async with world.http.get(f"/streams/s{number}") as answer:
                found.append(answer.status)
    assert found == [404, 404, 200, 200]
