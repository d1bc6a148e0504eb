"""One slot a browser: what it is too slow for it misses, and then it is told what is the case."""

import asyncio
import json
from typing import Any

import pytest

from monitoring.live.frames import CheckedLayout
from monitoring.live.spots import Spot
from monitoring.live.view import Client, Key, View
from monitoring.packing import Field
from tests.monitoring.cast import now

SECONDS = 10.0


def spot(subject: str, value: float, at: float, reason: str = "") -> Spot:
    kind = "unavailable" if reason else "measured"
    field: Field = ("cpu_utilization_ratio", "ratio", "s", kind, "host", reason, "")
    return Spot(1, subject, CheckedLayout(subject, (field,), (0,)), at, (value,))


class Stage:
    def __init__(self, clients: int = 1) -> None:
        self.latest: dict[str, Spot] = {}
        self.view = View(Key("fleet", None, "en", None), self.latest)
        self.clients = [Client() for _ in range(clients)]
        for client in self.clients:
            client.view = self.view
            self.view.clients.add(client)
        self.view.look_at(["1/node", "1/gpu:0"])
        self.at = now()

    def read(self, subject: str, value: float, reason: str = "") -> None:
        self.at += 0.01
        told = spot(subject, value, self.at, reason)
        self.latest[told.topic] = told
        self.view.touch(told.topic)


async def taken(client: Client) -> list[dict[str, Any]]:
    return [json.loads(message) for message in await asyncio.wait_for(client.take(), SECONDS)]


def values(messages: list[dict[str, Any]]) -> list[float]:
    return [frame[2][0] for message in messages for frame in message.get("frames", [])]


def numbers(messages: list[dict[str, Any]]) -> set[int]:
    return {layout["n"] for message in messages for layout in message.get("layouts", [])}


async def test_a_slow_reader_gets_the_latest_and_not_what_was_before() -> None:
    stage = Stage()
    (client,) = stage.clients
    await taken(client)
    for second in range(50):
        stage.read("node", float(second))
        stage.read("gpu:0", float(second))
        stage.view.flush()
    assert sorted(values(await taken(client))) == [49.0, 49.0]
    stage.read("node", 50.0)
    stage.view.flush()
    assert values(await taken(client)) == [50.0]


async def test_one_that_is_slow_keeps_no_other_waiting() -> None:
    stage = Stage(2)
    quick, slow = stage.clients
    await taken(quick)
    got = []
    for second in range(5):
        stage.read("node", float(second))
        stage.view.flush()
        got += values(await taken(quick))
    assert got == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert values(await taken(slow)) == [4.0]


async def test_whoever_was_told_everything_meanwhile_takes_no_layout_from_the_others() -> None:
    """A layout first told to one browser in full is still told to those who follow."""
    stage = Stage()
    (client,) = stage.clients
    await taken(client)
    stage.read("node", 1.0)
    late = Client()
    late.view = stage.view
    stage.view.clients.add(late)
    late.renew()
    assert values(await taken(late)) == [1.0]
    stage.view.flush()
    messages = await taken(client)
    assert values(messages) == [1.0]
    assert numbers(messages) == {messages[-1]["frames"][0][0]}


async def test_every_frame_is_told_after_its_layout_whatever_is_missed() -> None:
    stage = Stage(3)
    known: list[set[int]] = [set() for _ in stage.clients]
    for step in range(60):
        stage.read("node", 1.0, reason="" if step % 3 else f"because {step % 2}")
        if step % 4 == 0:
            stage.read("gpu:0", 2.0)
        stage.view.flush()
        for index, client in enumerate(stage.clients):
            if step % (index + 1) == 0:
                for message in await taken(client):
                    known[index] |= numbers([message])
                    for frame in message.get("frames", []):
                        assert frame[0] in known[index]


async def test_what_has_fallen_silent_is_not_told_to_whoever_comes() -> None:
    stage = Stage()
    (client,) = stage.clients
    stage.at -= 60.0
    stage.read("node", 1.0)
    client.renew()
    assert values(await taken(client)) == []


async def test_a_paused_browser_takes_nothing() -> None:
    stage = Stage()
    (client,) = stage.clients
    await taken(client)
    client.pause(True)
    stage.read("node", 1.0)
    stage.view.flush()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.take(), 0.05)
    client.pause(False)
    assert values(await taken(client)) == [1.0]


async def test_a_change_is_told_before_what_is_then_the_case() -> None:
    stage = Stage()
    (client,) = stage.clients
    await taken(client)
    stage.view.look_at(["1/node"])
    first, *_rest = await taken(client)
    assert first == {"changed": True}
