"""Whatever breaks between an agent and the database: each reading is stored exactly once."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
import uvicorn
from asgiref.sync import sync_to_async
from django.db import OperationalError

from dashboard import lifecycle
from dashboard.asgi import application
from engine.agent import link, outbox
from engine.agent.simulation.fleet import Plan, SimulatedAgent
from monitoring.live import writer as writing
from monitoring.live.frames import Frame
from monitoring.models import Reading
from monitoring.storage.store import store
from tests.dashboard.fleet_cast import worker

__all__ = ["worker"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("worker", "nothing_live_left"),
]
SECONDS = 20.0
TICK = 0.02


class Panel:
    """The real application behind a real server, which can be ended and started again."""

    def __init__(self) -> None:
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    async def start(self) -> None:
        self._server = uvicorn.Server(
            uvicorn.Config(
                application, lifespan="off", log_config=None, timeout_graceful_shutdown=1
            )
        )
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener.dup()]))
        async with asyncio.timeout(SECONDS):
            while not self._server.started:
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        self._server = self._task = None

    async def close(self) -> None:
        await self.stop()
        self._listener.close()


@pytest.fixture
async def panel(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Panel]:
    monkeypatch.setattr(writing, "SPACING_SECONDS", 0.01)
    monkeypatch.setattr(writing, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(writing, "MOST_DELAY", 0.02)
    monkeypatch.setattr(outbox, "RESEND_SECONDS", 1.0)
    monkeypatch.setattr(outbox, "PER_SECOND", 500.0)
    monkeypatch.setattr(link, "FLUSH_SECONDS", 0.02)
    monkeypatch.setattr(link, "FIRST_DELAY", 0.05)
    panel = Panel()
    await panel.start()
    yield panel
    await panel.close()


@pytest.fixture
async def agent(panel: Panel) -> AsyncIterator[SimulatedAgent]:
    _node, token = await sync_to_async(lifecycle.create_node)("box", "10.0.0.9")
    agent = SimulatedAgent(1, "box", token, Plan(panel.url, devices=1, seed=1, faults_per_day=0.0))
    yield agent
    await agent.close()


async def ticks(agent: SimulatedAgent, count: int) -> None:
    for _ in range(count):
        await agent.tick()
        await asyncio.sleep(TICK)


async def stored() -> list[float]:
    """The instants of the node's own readings."""
    rows = Reading.objects.filter(layout__subject="node").order_by("at")
    return [reading.at.timestamp() async for reading in rows]


async def until_stored(count: int) -> list[float]:
    async with asyncio.timeout(SECONDS):
        while len(found := await stored()) < count:
            await asyncio.sleep(0.05)
    return found


def unbroken(instants: Sequence[float]) -> bool:
    return max(after - before for before, after in pairwise(instants)) < 2.0


async def test_a_panel_that_is_ended_and_started_leaves_no_gap(
    panel: Panel, agent: SimulatedAgent
) -> None:
    await ticks(agent, 20)
    await until_stored(10)
    await panel.stop()
    await ticks(agent, 20)
    await panel.start()
    await ticks(agent, 20)
    found = await until_stored(60)
    assert len(found) == 60
    assert unbroken(found)


async def test_a_database_that_is_away_leaves_no_gap_and_no_reading_twice(
    agent: SimulatedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(frames: Sequence[Frame]) -> None:
        raise OperationalError("the database system is shutting down")

    def lost_answer(frames: Sequence[Frame]) -> None:
        store(frames)
        raise OperationalError("the connection was lost after the commit")

    for fault in (away, lost_answer):
        monkeypatch.setattr(writing, "store", fault)
        await ticks(agent, 15)
        monkeypatch.setattr(writing, "store", store)
        await ticks(agent, 5)
    found = await until_stored(40)
    assert len(found) == 40
    assert unbroken(found)


async def test_readings_that_a_panel_had_no_room_for_come_again(
    agent: SimulatedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_NUMBERS", 1)
    await ticks(agent, 20)
    assert await until_stored(1)
    monkeypatch.setattr(writing, "MOST_NUMBERS", 2_000_000)
    found = await until_stored(20)
    assert len(found) == 20


async def test_a_new_agent_on_the_node_goes_on_after_the_old_one(panel: Panel) -> None:
    """Its numbers begin anew; what the old one had not delivered is gone with it."""
    _node, token = await sync_to_async(lifecycle.create_node)("box", "10.0.0.9")
    plan = Plan(panel.url, devices=1, seed=1, faults_per_day=0.0)
    before = 0
    for _life in range(2):
        agent = SimulatedAgent(1, "box", token, plan)
        await ticks(agent, 10)
        found = await until_stored(before + 10)
        await agent.close()
        assert len(found) == before + 10
        before += 10
