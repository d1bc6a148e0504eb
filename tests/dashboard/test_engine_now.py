"""The deployment page says what the engine is at, from the head itself and from nowhere else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from dashboard.gateway.upstream import close_session
from dashboard.models import Rank, Replica
from engine.errors import said
from engine.protocol.stats import EngineStats, RankStats
from tests.dashboard.fake_head import TOKEN
from tests.dashboard.gateway_cast import make_deployment, make_replica

pytestmark = pytest.mark.django_db(transaction=True)

STUCK = RankStats(
    rank=1,
    phase="step",
    connected=True,
    step=41,
    doing="all-reduce",
    layer=12,
    doing_seconds=4.21,
    transport="shm",
    step_seconds=0.0312,
    communicate_seconds=0.0078,
    bubble=0.25,
)
STATS = EngineStats(
    launch="x",
    status="recovering",
    ranks=[RankStats(rank=0, phase="idle", connected=False), STUCK],
    running=3,
    waiting=5,
    kv_blocks_total=1000,
    kv_tokens_wanted=32000,
    epoch=2,
    last_fault=said("Rank 1 was killed."),
    recovery_seconds=2.34,
    resumed=8,
    bubble=0.12,
    expert_tokens=(30, 10, 60, 0),
)


@asynccontextmanager
async def head(stats: EngineStats) -> AsyncIterator[int]:
    """A head that only tells about itself; its port."""

    async def tell(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        return web.Response(body=msgspec.json.encode(stats))

    app = web.Application()
    app.router.add_get("/stats", tell)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
        await close_session()


def launch(port: int) -> Replica:
    replica = make_replica(make_deployment(), port)
    for rank in (0, 1):
        Rank.objects.create(
            replica=replica, rank=rank, stage=0, stage_rank=rank, node=replica.head_node
        )
    return replica


async def page(path: str = "/deployments/smol/engine/") -> str:
    client = AsyncClient()
    user = await sync_to_async(User.objects.create_user)("lin")
    await sync_to_async(client.force_login)(user)
    answer = await client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().replace("\xa0", " ").split())


async def test_a_rank_that_is_stuck_shows_where() -> None:
    async with head(STATS) as port:
        await sync_to_async(launch)(port)
        text = await page()
    assert "all-reduce, layer 12, 4.2 s" in text
    assert "31 ms" in text
    assert "25%" in text


async def test_recoveries_are_told_with_their_cause_and_time() -> None:
    async with head(STATS) as port:
        await sync_to_async(launch)(port)
        text = await page()
    assert "2 times in place, the last time within 2.3 s · 8 answers went on" in text
    assert "Rank 1 was killed." in text


async def test_a_cache_smaller_than_wanted_says_so() -> None:
    async with head(STATS) as port:
        await sync_to_async(launch)(port)
        text = await page()
    assert "16,000 tokens" in text
    assert "32,000 wanted, memory was short" in text


async def test_expert_load_is_drawn_as_shares() -> None:
    async with head(STATS) as port:
        await sync_to_async(launch)(port)
        text = await page()
    assert "Expert 2: 60% of the tokens" in text
    assert "Expert 3: 0% of the tokens" in text


async def test_a_head_that_is_silent_is_said_to_be_so() -> None:
    await sync_to_async(launch)(9)
    text = await page()
    await close_session()
    assert "Its head does not answer." in text
