"""Signed-in browsers follow telemetry live; a slow one misses frames instead of queueing them."""

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, User

from monitoring.consumers import LatestSlots, TelemetryConsumer
from monitoring.ingest import ingest
from tests.monitoring.cast import (
    NO_GPU,
    engine_samples,
    launch,
    make_node,
    node_samples,
    now,
)
from tests.sockets import SocketClient

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_connection_left"),
]


def browser(user: User | AnonymousUser, language: str = "en") -> SocketClient:
    query = f"lang={language}".encode()
    return SocketClient(TelemetryConsumer.as_asgi(), "/ws/telemetry", user=user, query_string=query)


async def say(socket: SocketClient, message: Any) -> None:
    await socket.send(json.dumps(message))


async def follow(socket: SocketClient, scope: str, pk: int | None = None) -> list[str]:
    assert await socket.connect()
    await say(socket, {"subscribe": {"scope": scope, "id": pk}})
    topics: list[str] = (await socket.receive_json())["subscribed"]
    return topics


async def frames(socket: SocketClient, count: int) -> dict[str, dict[str, Any]]:
    """Frames until `count` topics have one."""
    found: dict[str, dict[str, Any]] = {}
    while len(found) < count:
        message = await socket.receive_json()
        found.update({frame["topic"]: frame for frame in message.get("frames", [])})
    return found


@sync_to_async
def scene() -> tuple[int, int]:
    node = make_node()
    return node.pk, launch("abc", [node, node]).pk


async def test_a_deployment_is_followed_with_its_node_and_its_ranks() -> None:
    node, deployment = await scene()
    socket = browser(User(username="ada"))
    topics = await follow(socket, "deployment", deployment)
    assert topics == [f"{node}/node", "launch:abc", "launch:abc:rank0", "launch:abc:rank1"]
    await ingest(node, 1, now(), [*node_samples(), *engine_samples("abc")])
    found = await frames(socket, 4)
    assert found["launch:abc"]["values"]["generation_tokens_per_second"] == 40.0
    assert found["launch:abc:rank1"]["values"]["step_seconds"] == 0.03
    await socket.disconnect()


async def test_an_absent_value_arrives_as_null_with_its_reason() -> None:
    node, _deployment = await scene()
    socket = browser(User(username="ada"))
    await follow(socket, "node", node)
    await ingest(node, 1, now(), node_samples())
    frame = (await frames(socket, 1))[f"{node}/node"]
    assert frame["values"]["gpu_utilization_ratio"] is None
    assert frame["absent"] == {"gpu_utilization_ratio": NO_GPU}
    assert frame["how"]["cpu_utilization_ratio"] == ["measured", "host: /proc/stat"]
    await socket.disconnect()


async def test_the_fleet_is_followed_without_its_ranks() -> None:
    node, _deployment = await scene()
    socket = browser(User(username="ada"))
    assert await follow(socket, "fleet") == [f"{node}/node", "launch:abc"]
    await ingest(node, 1, now(), [*node_samples(), *engine_samples("abc")])
    assert set(await frames(socket, 2)) == {f"{node}/node", "launch:abc"}
    await socket.disconnect()


async def test_another_nodes_readings_are_not_sent() -> None:
    node, _deployment = await scene()
    other = (await sync_to_async(make_node)("box-2")).pk
    socket = browser(User(username="ada"))
    await follow(socket, "node", node)
    await ingest(other, 1, now(), node_samples())
    await ingest(node, 1, now(), node_samples())
    assert set(await frames(socket, 1)) == {f"{node}/node"}
    await socket.disconnect()


async def test_nobody_follows_without_signing_in() -> None:
    assert not await browser(AnonymousUser()).connect()


async def test_a_malformed_subscription_is_answered_with_what_is_wrong() -> None:
    socket = browser(User(username="ada"))
    await socket.connect()
    await say(socket, {"subscribe": {"scope": "moon"}})
    assert "error" in await socket.receive_json()
    await socket.disconnect()


async def test_a_slow_reader_gets_the_latest_frame_and_not_the_ones_before() -> None:
    slots = LatestSlots()
    for second in range(50):
        slots.put("a", {"at": float(second)})
        slots.put("b", {"at": float(second)})
    assert await slots.take() == [{"at": 49.0}, {"at": 49.0}]


async def test_a_source_that_hurries_is_slowed_to_about_one_frame_a_second() -> None:
    slots = LatestSlots()
    taken = []
    for tenth in range(30):
        slots.put("a", {"at": tenth / 10 + 1})
        try:
            async with asyncio.timeout(0):
                taken.extend(await slots.take())
        except TimeoutError:
            continue
    assert 3 <= len(taken) <= 4
