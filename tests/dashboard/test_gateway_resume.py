"""An answer outlives the connection to its head, its head, and the panel's own process."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from channels.db import database_sync_to_async

from dashboard.choices import ReplicaRole
from dashboard.gateway import hold, ids, passage
from dashboard.models import ApiKey, ApiRequest, Replica
from engine.head.api.exchange import Exchange
from engine.head.api.opening import Opener
from tests.dashboard.gateway_cast import make_deployment, make_key, make_replica, make_user, panel
from tests.dashboard.wire import Wire, wire_to
from tests.engine.cut_streams import journaled
from tests.engine.head_world import MODEL, TOKEN, HeadWorld, head_world, until

pytestmark = pytest.mark.django_db(transaction=True)
CHAT = "/v1/chat/completions"
ASK: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Say something"}],
    "max_tokens": 30,
    "stream": True,
}


@asynccontextmanager
async def staged() -> AsyncIterator[tuple[HeadWorld, Wire, aiohttp.ClientSession]]:
    """A head behind a wire, and somebody who may ask it."""
    async with head_world() as world, wire_to(world.front.address.port) as wire:
        secret = await database_sync_to_async(_stage)(wire.port)
        async with panel(secret) as client:
            yield world, wire, client


def _stage(port: int) -> str:
    _key, secret = make_key(make_user())
    make_replica(make_deployment(name=MODEL), port, token=TOKEN)
    return secret


def text_of(stream: str) -> str:
    lines = [line[6:] for line in stream.split("\n") if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def ids_of(stream: str) -> list[str]:
    return [line[4:] for line in stream.split("\n") if line.startswith("id: ")]


async def begin(world: HeadWorld, client: aiohttp.ClientSession) -> aiohttp.ClientResponse:
    """A stream of which a few tokens have come; no more do until the ranks are let go."""
    await world.ranks[0].allow(6)
    answer = await client.post(CHAT, json=ASK)
    assert answer.status == 200
    await until(lambda: world.ranks[0].answered >= 6, "the first tokens")
    return answer


async def expected(world: HeadWorld) -> str:
    _status, whole = await world.chat(max_tokens=30)
    return str(whole["choices"][0]["message"]["content"])


async def test_a_cut_connection_is_a_pause() -> None:
    async with staged() as (world, wire, client):
        answer = await begin(world, client)
        first = await answer.content.readuntil(b"\n\n")
        wire.cut()
        await world.ranks[0].allow(None)
        stream = (first + await answer.read()).decode()
        assert text_of(stream) == await expected(world)
        assert ids_of(stream) == [str(number) for number in range(1, 32)]
        assert ": paused\n" in stream
        assert ": resumed\n" in stream
        assert ": t " not in stream
        assert stream.endswith("data: [DONE]\n\n")
        assert world.engine.scheduler.pool.used == 0


async def test_another_head_goes_on_where_the_first_is_gone() -> None:
    async with staged() as (world, wire, client), head_world() as other:
        fallback = await database_sync_to_async(_add_fallback)(other.front.address.port)
        answer = await begin(world, client)
        wire.cut(for_good=True)
        stream = await answer.text()
        assert text_of(stream) == await expected(other)
        assert ids_of(stream) == [str(number) for number in range(1, 32)]
        assert other.engine.scheduler.counters.generated_tokens < 60, fallback


def _add_fallback(port: int) -> str:
    primary = Replica.objects.get()
    replica = make_replica(primary.deployment, port, token=TOKEN)
    Replica.objects.filter(pk=replica.pk).update(role=ReplicaRole.FALLBACK)
    return replica.launch


@pytest.fixture(autouse=True)
def _places_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cast makes primaries; a second one needs another place from the start."""
    create = Replica.objects.create

    def placed(**fields: Any) -> Replica:
        return create(**{"index": Replica.objects.count()} | fields)

    monkeypatch.setattr(Replica.objects, "create", placed)


async def test_a_whole_answer_survives_a_cut_too() -> None:
    async with staged() as (world, wire, client):
        await world.ranks[0].allow(6)
        asking = asyncio.create_task(client.post(CHAT, json=ASK | {"stream": False}))
        await until(lambda: world.ranks[0].answered >= 6, "the first tokens")
        wire.cut()
        await world.ranks[0].allow(None)
        answer = await asking
        assert answer.status == 200
        assert answer.content_type == "application/json"
        body = await answer.json()
        assert body["choices"][0]["message"]["content"] == await expected(world)
        assert body["usage"]["completion_tokens"] == 30


async def test_a_caller_who_hangs_up_frees_the_engine_at_once() -> None:
    async with staged() as (world, _wire, client):
        answer = await begin(world, client)
        answer.close()
        await until(lambda: world.engine.scheduler.counters.aborted == 1, "the abort")
        assert world.engine.scheduler.pool.used == 0


async def test_a_caller_comes_back_for_the_rest() -> None:
    """The panel's process died: to the head, that is a connection that broke."""
    async with staged() as (world, _wire, client):
        stream = await database_sync_to_async(_sign)()
        await world.ranks[0].allow(6)
        number = stream.partition(".")[0]
        async with world.http.post(CHAT, json=ASK, headers=journaled(number)) as lost:
            first = b"".join([await lost.content.readuntil(b"\n\n") for _ in range(3)])
            lost.close()
        await world.ranks[0].allow(None)
        back = {"Last-Event-ID": ids_of(first.decode())[-1]}
        answer = await client.get(f"/v1/streams/{stream}", headers=back)
        assert answer.status == 200
        assert answer.headers["X-Request-Id"] == stream
        whole = first.decode() + await answer.text()
        assert text_of(whole) == await expected(world)
        assert ids_of(whole) == [str(number) for number in range(1, 32)]
    row = await ApiRequest.objects.aget()
    assert (row.request, row.endpoint, row.outcome) == (number, "/v1/streams", "answered")
    assert row.launch


async def test_a_connection_that_is_found_dead_late_ends_nothing_for_who_came_back() -> None:
    async with staged() as (world, _wire, client):
        dead = await begin(world, client)
        async with client.get(f"/v1/streams/{dead.headers['X-Request-Id']}") as back:
            first = await back.content.readuntil(b"\n\n")
            dead.close()
            await asyncio.sleep(0.3)
            await world.ranks[0].allow(None)
            stream = (first + await back.read()).decode()
        assert text_of(stream) == await expected(world)
        assert world.engine.scheduler.counters.aborted == 0


async def test_a_caller_hears_something_while_nobody_can_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passage, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(hold, "WAIT_SECONDS", 0.5)
    async with staged() as (world, wire, client):
        answer = await begin(world, client)
        wire.cut(for_good=True)
        stream = await answer.text()
        assert stream.count(": waiting\n") > 3
        error, done = stream.split("\n\n")[-3:-1]
        assert json.loads(error.rpartition("data: ")[2])["error"]["code"] == "upstream_failed"
        assert done == "data: [DONE]"


async def test_who_hangs_up_while_a_head_still_reads_is_told_of_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The head knows a request only once it has read and tokenized all of it."""
    held = asyncio.Event()
    opened = Opener.open

    async def slow(self: Opener, path: str, payload: bytes) -> Exchange:
        await held.wait()
        return await opened(self, path, payload)

    monkeypatch.setattr(Opener, "open", slow)
    async with staged() as (world, wire, client):
        await world.ranks[0].allow(6)
        asking = asyncio.create_task(client.post(CHAT, json=ASK))
        await until(lambda: wire.connections == 1, "the question")
        await asyncio.sleep(0.1)
        asking.cancel()
        await until(lambda: wire.connections == 2, "the first word of it")
        await asyncio.sleep(0.1)
        held.set()
        await until(lambda: world.engine.scheduler.counters.aborted == 1, "the abort")


def _sign(owner: int = 0) -> str:
    replica = Replica.objects.get()
    return ids.sign(ids.StreamId(ids.new_number(), replica.launch, owner or _owner()))


def _owner() -> int:
    return int(ApiKey.objects.get().pk)


async def test_what_is_over_or_somebody_elses_is_not_found() -> None:
    async with staged() as (_world, _wire, client):
        own = await database_sync_to_async(_sign)()
        others = await database_sync_to_async(_sign)(owner=10_000)
        for stream in (own, others, own[:-1] + "x", "req_1"):
            answer = await client.get(f"/v1/streams/{stream}")
            assert answer.status == 404
            error = (await answer.json())["error"]
            assert error["code"] == "unknown_stream"
            assert "or it is over" in error["message"]
