"""The embedded driver: how a process is started and what its head is asked."""

import contextlib
import sys
from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest
from aiohttp import web

from engine.config import EngineConfig
from engine.drivers import DRIVERS, driver_named
from engine.drivers.base import DriverError, NoAnswer
from engine.protocol.launch import Address, decode_spec
from engine.protocol.stats import EngineStats
from tests.engine.agents import spec_of

DRIVER = DRIVERS["embedded"]


@contextlib.asynccontextmanager
async def head(status: int, body: bytes) -> AsyncIterator[Address]:
    """A head that knows one token."""

    async def health(_: web.Request) -> web.Response:
        return web.Response(status=status)

    async def stats(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer launch-token-value":
            return web.Response(status=401)
        return web.Response(body=body, content_type="application/json")

    application = web.Application()
    application.add_routes([web.get("/health", health), web.get("/stats", stats)])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield Address("127.0.0.1", runner.addresses[0][1])
    finally:
        await runner.cleanup()


def test_the_spec_travels_on_standard_input_only() -> None:
    spec = spec_of("/models/m.gguf", config=EngineConfig(threads_per_rank=3))
    command = DRIVER.command(spec)
    assert command.argv == [sys.executable, "-m", "engine.rank"]
    assert command.environment["OMP_NUM_THREADS"] == "3"
    assert decode_spec(command.standard_input) == spec
    assert command.standard_input.endswith(b"\n")
    assert b"\n" not in command.standard_input[:-1]
    assert DRIVER.command(spec_of("", role="head")).argv[-1] == "engine.head"


async def test_a_ready_head_is_asked_with_the_launch_token() -> None:
    said = EngineStats(launch="l1", status="ready", steps=4)
    async with head(200, msgspec.json.encode(said)) as http, aiohttp.ClientSession() as session:
        spec = spec_of("", role="head", http=http)
        assert await DRIVER.ready(session, spec)
        assert await DRIVER.stats(session, spec) == said
        with pytest.raises(NoAnswer, match="/stats with an error"):
            await DRIVER.stats(session, spec_of("", role="head", http=http, token="other"))
        with pytest.raises(NoAnswer, match="Another launch"):
            await DRIVER.stats(session, spec_of("", role="head", http=http, launch="l2"))


async def test_a_head_that_is_away_or_talks_nonsense_is_no_crash() -> None:
    async with aiohttp.ClientSession() as session:
        away = spec_of("", role="head", http=Address("127.0.0.1", 1))
        assert not await DRIVER.ready(session, away)
        with pytest.raises(NoAnswer, match="does not answer"):
            await DRIVER.stats(session, away)
        async with head(503, b"<html>") as http:
            loading = spec_of("", role="head", http=http)
            assert not await DRIVER.ready(session, loading)
            with pytest.raises(NoAnswer, match="cannot be read"):
                await DRIVER.stats(session, loading)


def test_alive_means_that_something_gets_done() -> None:
    before = EngineStats(launch="l1", status="ready", steps=4, running=1)
    assert DRIVER.progress(before) == DRIVER.progress(before)
    after = msgspec.structs.replace(before, steps=5)
    assert DRIVER.progress(before) != DRIVER.progress(after)


def test_an_unknown_driver_names_the_known_ones() -> None:
    with pytest.raises(DriverError, match="'warp'; this node has embedded"):
        driver_named("warp")
