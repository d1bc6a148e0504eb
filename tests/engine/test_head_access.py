"""Nothing but /health answers without the launch's token, and no stranger becomes a rank."""

import asyncio

import aiohttp
import msgspec
import pytest

from engine.protocol.framing import pack_frame
from engine.protocol.steps import PROTOCOL_VERSION, Hello, encode
from tests.engine.head_world import TOKEN, HeadWorld, head_world

PATHS = ["/stats", "/metrics", "/v1/models", "/v1/chat/completions", "/nowhere"]


@pytest.mark.parametrize("given", [None, "Bearer wrong", f"Basic {TOKEN}", f"bearer{TOKEN}"])
async def test_every_path_but_health_needs_the_token(given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given}
    async with head_world() as world, aiohttp.ClientSession(world.url, headers=headers) as http:
        for path in PATHS:
            async with http.get(path) as answer:
                assert answer.status == 401
                assert (await answer.json())["error"]["code"] == "invalid_api_key"
        async with http.get("/health") as answer:
            assert answer.status == 200
            assert TOKEN not in await answer.text()


async def turned_away(world: HeadWorld, payload: bytes) -> bool:
    """Whether the control port hangs up after `payload` without a word."""
    control = world.spec.control
    reader, writer = await asyncio.open_connection(control.host, control.port)
    writer.write(payload)
    try:
        return await asyncio.wait_for(reader.read(), 10) == b""
    except ConnectionResetError:
        return True
    finally:
        writer.close()


async def test_a_stranger_does_not_become_a_rank() -> None:
    async with head_world(ready=False) as world:
        right = Hello(PROTOCOL_VERSION, "l1", TOKEN, 0, 1)
        for change in (
            {"token": "wrong"},
            {"launch": "l2"},
            {"rank": 2},
            {"rank": -1},
            {"version": PROTOCOL_VERSION + 1},
        ):
            hello = msgspec.structs.replace(right, **change)
            assert await turned_away(world, pack_frame(encode(hello))), change
        assert await turned_away(world, b"GET / HTTP/1.1\r\n\r\n")
        assert await turned_away(world, pack_frame(b"\x93nonsense"))
        assert not any(rank.connected for rank in world.engine.stats().ranks)


async def test_a_rank_cannot_be_taken_over() -> None:
    async with head_world() as world:
        hello = Hello(PROTOCOL_VERSION, "l1", TOKEN, 0, 1)
        assert await turned_away(world, pack_frame(encode(hello)))
        status, _ = await world.chat()
        assert status == 200
