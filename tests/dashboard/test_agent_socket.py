"""Who may speak as a node, and what becomes of what it says."""

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from dashboard import lifecycle
from dashboard.consumers import agent as consumer
from dashboard.models import Event, LogLine, Node
from engine.protocol.agent import (
    AGENT_PROTOCOL_VERSION,
    AgentHello,
    AgentWelcome,
    Heartbeat,
    Observed,
    Pong,
    Refused,
    Taken,
    Telemetry,
    ToAgent,
)
from monitoring.models import Reading
from monitoring.packing import Field, Layout
from tests.dashboard.fake_agent import FakeAgent, inventory
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, node, worker
from tests.sockets import Closed

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)


M = TypeVar("M", bound=ToAgent)


async def new_node(name: str = "box") -> str:
    created: tuple[Node, str] = await database_sync_to_async(lifecycle.create_node)(
        name, "10.0.0.9"
    )
    return created[1]


async def closed_with(agent: FakeAgent) -> int:
    """Whatever it is still told, in the end it is closed."""
    try:
        while True:
            await agent.receive()
    except Closed as closed:
        await agent.socket.disconnect(closed.code)
        return closed.code


@pytest.mark.parametrize("token", ["wrong", ""])
async def test_a_wrong_token_is_told_so(worker: Worker, token: str) -> None:
    await new_node()
    agent = FakeAgent(token, "10.0.0.9")
    assert await agent.socket.connect()
    refusal = await agent.receive()
    assert isinstance(refusal, Refused)
    assert "token" in refusal.reason
    assert await closed_with(agent) == consumer.WRONG_TOKEN
    assert (await node("box")).status == "pending"


async def test_a_node_that_says_hello_is_online_with_what_it_is_made_of(worker: Worker) -> None:
    async with FakeAgent(await new_node(), "10.0.0.9"):
        box = await node("box")
        assert box.status == "online"
        assert box.hardware == inventory("10.0.0.9", boot_id="first")
    await wait_for_offline("box")


async def test_a_panel_that_stops_says_nothing_of_its_nodes(worker: Worker) -> None:
    agent = FakeAgent(await new_node(), "10.0.0.9")
    await agent.dial()
    await agent.socket.disconnect(consumer.SERVICE_RESTART)
    assert (await node("box")).status == "online"
    assert not await Event.objects.filter(level="warning").aexists()


async def wait_for_offline(name: str) -> None:
    box = await node(name)
    assert (box.status, str(box.reason)) == ("offline", "its connection was closed.")


async def test_a_second_connection_of_a_node_takes_over(worker: Worker) -> None:
    token = await new_node()
    first = FakeAgent(token, "10.0.0.9")
    await first.dial()
    async with FakeAgent(token, "10.0.0.9") as second:
        assert await closed_with(first) == consumer.TAKEN_OVER
        assert (await node("box")).status == "online", "its old connection's end means nothing"
        await second.beat()


async def test_another_version_of_the_protocol_is_refused(worker: Worker) -> None:
    agent = FakeAgent(await new_node(), "10.0.0.9")
    assert await agent.socket.connect()
    await agent.say(AgentHello(99, inventory("10.0.0.9")))
    refusal = await agent.receive()
    assert isinstance(refusal, Refused)
    assert "protocol 99" in refusal.reason
    assert await closed_with(agent) == consumer.UNREADABLE


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x80", "text"])
async def test_an_unreadable_message_is_refused(worker: Worker, payload: bytes | str) -> None:
    agent = FakeAgent(await new_node(), "10.0.0.9")
    await agent.dial()
    await agent.socket.send(payload)
    assert isinstance(await agent.receive(), Refused)
    assert await closed_with(agent) == consumer.UNREADABLE


async def test_reports_before_the_hello_are_refused(worker: Worker) -> None:
    agent = FakeAgent(await new_node(), "10.0.0.9")
    assert await agent.socket.connect()
    await agent.say(Observed(0, []))
    assert isinstance(await agent.receive(), Refused)
    assert await closed_with(agent) == consumer.UNREADABLE


async def test_a_second_hello_is_refused(worker: Worker) -> None:
    agent = FakeAgent(await new_node(), "10.0.0.9")
    await agent.dial()
    await agent.say(AgentHello(AGENT_PROTOCOL_VERSION, inventory("10.0.0.9")))
    assert isinstance(await agent.receive(), Refused)
    assert await closed_with(agent) == consumer.UNREADABLE


async def test_a_silent_agent_is_disconnected(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(consumer, "FIRST_REPORT_SECONDS", 0.1)
    agent = FakeAgent(await new_node(), "10.0.0.9")
    assert isinstance(await agent.dial(), AgentWelcome)
    assert await closed_with(agent) == consumer.SILENT
    assert "nothing was heard" in str((await node("box")).reason)


async def test_an_agent_is_not_silent_while_the_panel_is_busy(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while its last message is taken in nor while this process gets no processor."""
    monkeypatch.setattr(consumer, "SILENT_SECONDS", 0.4)
    monkeypatch.setattr(consumer, "FIRST_REPORT_SECONDS", 0.1)
    monkeypatch.setattr(consumer, "keep_lines", lambda node, message: time.sleep(1.0))
    async with FakeAgent(await new_node(), "10.0.0.9") as agent:
        assert agent.heart is not None
        agent.heart.cancel()
        await agent.log("launch:rank0", "a line that is slow to be stored")
        await asyncio.sleep(0.8)
        assert (await node("box")).status == "online"
        await agent.beat()
        await asyncio.sleep(0.3)
        time.sleep(0.8)  # nobody here is served meanwhile
        await agent.beat()
        await asyncio.sleep(0.2)
        assert (await node("box")).status == "online"
        assert await closed_with(agent) == consumer.SILENT


async def test_a_node_whose_panel_died_is_offline_after_ten_seconds(worker: Worker) -> None:
    await new_node()
    seen = timezone.now() - timedelta(seconds=11)
    await Node.objects.aupdate(status="online", connection="dead", last_seen=seen)
    await database_sync_to_async(lifecycle.reconcile)()
    assert (await node("box")).status == "offline"


async def test_a_new_token_ends_the_connection_made_with_the_old_one(worker: Worker) -> None:
    agent = FakeAgent(await new_node(), "10.0.0.9")
    await agent.dial()
    token = await database_sync_to_async(lifecycle.rotate_token)(await node("box"))
    assert await closed_with(agent) == consumer.TAKEN_OVER
    async with FakeAgent(token, "10.0.0.9"):
        assert (await node("box")).status == "online"


async def lines() -> list[tuple[str, str]]:
    stored = LogLine.objects.filter(job=None)
    return [(line.source, line.text) async for line in stored]


async def test_log_lines_are_kept_and_a_node_speaks_only_for_its_own_ranks(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        launch = cast.a.desired.processes[0].launch
        await cast.a.log(f"{launch}:rank0", "one", "two\x00")
        await say_and_wait(cast, cast.a)
        assert await lines() == [("rank0", "one"), ("rank0", "two")]
        await cast.b.log("unknown:rank0", "nobody's")
        await say_and_wait(cast, cast.b)
        assert len(await lines()) == 2


async def say_and_wait(cast: Fleet, agent: FakeAgent) -> None:
    """What an agent says is handled in order: once this report shows, so is all before it."""
    name = "node-a" if agent is cast.a else "node-b"
    await agent.report(generation=agent.desired.generation + 7)

    def shown() -> bool:
        seen: Any = Node.objects.get(name=name).observed_generation
        return bool(seen == agent.desired.generation + 7)

    await cast.until(shown)


CPU: Field = ("cpu_utilization_ratio", "ratio", "host: /proc/stat", "measured", "host", "", "")


async def hear(agent: FakeAgent, kind: type[M]) -> M:
    """The next message of this kind; what the panel wants to run may come in between."""
    async with asyncio.timeout(10):
        while not isinstance(message := await agent.hear(), kind):
            pass
    return message


async def test_a_heartbeat_is_answered_with_the_panels_time(worker: Worker) -> None:
    async with FakeAgent(await new_node(), "10.0.0.9") as agent:
        before = time.time()
        await agent.say(Heartbeat(123.25))
        pong = await hear(agent, Pong)
        assert pong.asked_at == 123.25
        assert before <= pong.heard_at <= pong.answered_at <= time.time()


async def test_readings_are_said_to_be_taken_once_they_are_stored(
    worker: Worker, nothing_live_left: None
) -> None:
    async with FakeAgent(await new_node(), "10.0.0.9") as agent:
        at = time.time()
        layouts = [Layout(0, "node", (CPU,))]
        await agent.say(Telemetry(4, at, layouts, [(0, (0.5,))]))
        await agent.say(Telemetry(5, at + 1, [], [(0, (0.6,))]))
        taken: list[int] = []
        while len(taken) < 2:
            taken += (await hear(agent, Taken)).seqs
        assert sorted(taken) == [4, 5]
        numbers = [r.numbers async for r in Reading.objects.order_by("at")]
        assert numbers == [[0.5], [0.6]]


async def test_a_heartbeat_waits_neither_for_the_database_nor_for_readings(
    worker: Worker, nothing_live_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr("monitoring.live.writer.store", lambda frames: release.wait(20))
    async with FakeAgent(await new_node(), "10.0.0.9") as agent:
        await agent.say(Telemetry(0, time.time(), [Layout(0, "node", (CPU,))], [(0, (0.5,))]))
        for _ in range(5):
            await agent.say(Heartbeat(1.0))
            assert (await hear(agent, Pong)).asked_at == 1.0
        release.set()
        await hear(agent, Taken)


async def test_an_idle_nodes_report_is_taken_in_when_it_says_something_new(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, observe = 0, lifecycle.observe

    def counting(*given: Any) -> None:
        nonlocal taken
        taken += 1
        observe(*given)

    monkeypatch.setattr(consumer, "SEEN_SECONDS", 0.0)
    monkeypatch.setattr("dashboard.lifecycle.observe", counting)
    async with FakeAgent(await new_node(), "10.0.0.9") as agent:
        await agent.beat()
        seen = (await node("box")).last_seen
        async with asyncio.timeout(10):
            while (await node("box")).last_seen == seen:
                await asyncio.sleep(0.05)
        await agent.report()
        await agent.report()
        await agent.report(generation=agent.desired.generation + 1)
    assert taken == 2, "the first, and the one that differs"
