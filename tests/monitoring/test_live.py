"""Signed-in browsers follow telemetry live; a slow one misses frames instead of queueing them."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from dashboard.models import Replica
from monitoring.live import hub
from monitoring.live.consumers import TelemetryConsumer
from monitoring.live.desk import filled, live
from monitoring.metrics import FIRST_TOKEN_BUCKET, GPU_UTILIZATION
from monitoring.samples import Sample, measured
from tests.monitoring.cast import (
    NO_GPU,
    engine_samples,
    launch,
    make_node,
    node_samples,
    now,
    send,
)
from tests.sockets import SECONDS, SocketClient

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_connection_left", "nothing_live_left"),
]


class Browser:
    """What a page makes of what it is told: it knows only layouts that came over its socket."""

    def __init__(self, user: User | AnonymousUser | None = None, language: str = "en") -> None:
        self.socket = SocketClient(
            TelemetryConsumer.as_asgi(),
            "/ws/telemetry",
            user=user or User(username="ada"),
            query_string=f"lang={language}".encode(),
        )
        self.layouts: dict[int, dict[str, Any]] = {}
        self.seen: dict[str, dict[str, Any]] = {}
        """Topic -> the newest values by key."""
        self.series: dict[str, dict[str, Any]] = {}
        self.frames = 0
        self.grid: dict[str, Any] = {}
        self.changed = 0
        self.errors: list[str] = []

    async def follow(self, scope: str, pk: int | None = None, grid: str | None = None) -> None:
        assert await self.socket.connect()
        await self.say({"subscribe": {"scope": scope, "id": pk}, "grid": grid})
        await self.hear()

    async def say(self, message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def hear(self) -> Any:
        message = await self.socket.receive_json()
        for layout in message.get("layouts", []):
            self.layouts[layout["n"]] = layout
        for number, at, values in message.get("frames", []):
            layout = self.layouts[number]
            keys = [series["key"] for series in layout["series"]]
            self.seen[layout["topic"]] = {**dict(zip(keys, values, strict=True)), "at": at}
            self.series[layout["topic"]] = {s["key"]: s for s in layout["series"]}
            self.frames += 1
        self.grid = message.get("grid", self.grid)
        self.changed += message.get("changed", False)
        self.errors += [message["error"]] if "error" in message else []
        return message

    async def until_seen(self, *topics: str) -> None:
        async with asyncio.timeout(SECONDS):
            while not set(topics) <= set(self.seen):
                await self.hear()

    async def until_value(self, topic: str, key: str, value: float | None) -> None:
        async with asyncio.timeout(SECONDS):
            while self.seen.get(topic, {}).get(key, "nothing") != value:
                await self.hear()

    async def go(self) -> None:
        await self.socket.disconnect()


@sync_to_async
def scene() -> tuple[int, int]:
    node = make_node()
    return node.pk, launch("abc", [node, node]).pk


@sync_to_async
def with_gpus(count: int, devices: int = 2) -> list[int]:
    nodes = [make_node(f"box-{index:02d}") for index in range(count)]
    for node in nodes:
        node.inventory = {
            "hostname": "h",
            "address": "127.0.0.1",
            "platform": "p",
            "cpu_model": "c",
            "cpu_count": 1,
            "memory_bytes": 1,
            "python": "3.11",
            "engine_version": "1",
            "accelerators": [
                {"index": index, "vendor": "nvidia", "name": "A"} for index in range(devices)
            ],
        }
        node.save()
    return [node.pk for node in nodes]


def gpu_samples(values: Iterable[float]) -> list[Sample]:
    return [
        measured(GPU_UTILIZATION, value, source="x", scope="accelerator", subject=f"gpu:{index}")
        for index, value in enumerate(values)
    ]


async def test_a_deployment_is_followed_with_its_node_and_its_ranks() -> None:
    node, deployment = await scene()
    browser = Browser()
    await browser.follow("deployment", deployment)
    await send(node, 1, now(), [*node_samples(), *engine_samples("abc")])
    await browser.until_seen(f"{node}/node", "launch:abc", "launch:abc:rank0", "launch:abc:rank1")
    assert browser.seen["launch:abc"]["generation_tokens_per_second@engine"] == 40.0
    assert browser.seen["launch:abc:rank1"]["step_seconds@engine"] == 0.03
    await browser.go()


async def test_an_absent_value_arrives_as_null_with_its_reason() -> None:
    node, _deployment = await scene()
    browser = Browser()
    await browser.follow("node", node)
    await send(node, 1, now(), node_samples())
    await browser.until_seen(f"{node}/node")
    key = "gpu_utilization_ratio@accelerator"
    assert browser.seen[f"{node}/node"][key] is None
    assert browser.series[f"{node}/node"][key]["reason"] == NO_GPU
    cpu = browser.series[f"{node}/node"]["cpu_utilization_ratio@host"]
    assert (cpu["kind"], cpu["source"], cpu["unit"]) == ("measured", "host: /proc/stat", "ratio")
    await browser.go()


async def test_a_reason_that_changes_is_told_before_the_values_that_need_it() -> None:
    node, _deployment = await scene()
    browser = Browser()
    await browser.follow("fleet")
    at, key = now(), "generation_tokens_per_second@engine"
    for second, rate in enumerate([40.0, None, 42.0, None]):
        await send(node, second, at + second / 10, engine_samples("abc", rate))
        await browser.until_value("launch:abc", key, rate)
        assert bool(browser.series["launch:abc"][key]["reason"]) == (rate is None)
    await browser.go()


async def test_a_browser_that_comes_later_is_told_what_is_known_at_once() -> None:
    node, _deployment = await scene()
    first, second = Browser(), Browser()
    await first.follow("fleet")
    await send(node, 1, now(), engine_samples("abc"))
    await first.until_seen("launch:abc")
    await second.follow("fleet")
    await second.until_seen("launch:abc")
    await send(node, 2, now(), engine_samples("abc", 50.0))
    for browser in (first, second):
        await browser.until_value("launch:abc", "generation_tokens_per_second@engine", 50.0)
        await browser.go()


async def test_who_looks_at_the_same_gets_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    node, _deployment = await scene()
    encoded = 0
    browsers = [Browser() for _ in range(5)]
    for browser in browsers:
        await browser.follow("fleet")

    def counting(message: dict[str, Any]) -> str:
        nonlocal encoded
        encoded += 1
        return json.dumps(message)

    monkeypatch.setattr("monitoring.live.view._encode", counting)
    await send(node, 1, now(), node_samples())
    for browser in browsers:
        await browser.until_seen(f"{node}/node")
        await browser.go()
    assert encoded == 2, "one message of layouts and one of frames, for all five"


async def test_the_fleet_is_followed_without_its_ranks_and_without_histograms() -> None:
    node, _deployment = await scene()
    browser = Browser()
    await browser.follow("fleet")
    bar = measured(
        FIRST_TOKEN_BUCKET, 3, source="e", scope="engine", subject="launch:abc", label="le=0.5"
    )
    await send(node, 1, now(), [*node_samples(), *engine_samples("abc"), bar])
    await browser.until_seen(f"{node}/node", "launch:abc")
    assert set(browser.seen) == {f"{node}/node", "launch:abc"}
    assert not any("bucket" in key for key in browser.seen["launch:abc"])
    await browser.go()


async def test_another_nodes_readings_are_not_sent() -> None:
    node, _deployment = await scene()
    other = (await sync_to_async(make_node)("box-2")).pk
    browser = Browser()
    await browser.follow("node", node)
    await send(other, 1, now(), node_samples())
    await send(node, 1, now(), node_samples())
    await browser.until_seen(f"{node}/node")
    assert set(browser.seen) == {f"{node}/node"}
    await browser.go()


async def test_a_large_fleet_is_told_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitoring.live.hub.FRESH_SECONDS", 60.0)  # However slow the test is.
    nodes = await with_gpus(17)
    browser, key = Browser(), "gpu_utilization_ratio@accelerator"
    await browser.follow("fleet", grid="gpu_utilization_ratio")
    at = now()
    for index, node in enumerate(nodes):
        await send(node, 1, at, [*node_samples(cpu=0.5), *gpu_samples([0.1, index / 100])])
    async with asyncio.timeout(SECONDS):
        while browser.seen.get("group:gpu", {}).get(f"{key}{{count}}") != 34:
            await send(nodes[0], 2, now(), [*node_samples(cpu=0.5), *gpu_samples([0.1, 0.0])])
            await browser.hear()
    assert set(browser.seen) == {"group:node", "group:gpu"}
    told = browser.seen["group:gpu"]
    total = 17 * 0.1 + sum(index / 100 for index in range(17))
    assert told[f"{key}{{high}}"] == 0.16
    assert told[f"{key}{{low}}"] == 0.0
    assert told[f"{key}{{sum}}"] == pytest.approx(total)
    assert told[f"{key}{{mean}}"] == pytest.approx(total / 34)
    told = browser.seen["group:node"]
    assert told["cpu_utilization_ratio@host{mean}"] == 0.5
    absent = browser.series["group:node"][f"{key}{{mean}}"]
    assert (absent["kind"], absent["reason"] != "") == ("unavailable", True)
    assert told[f"{key}{{mean}}"] is None
    await browser.go()


async def test_a_grid_has_a_cell_for_each_accelerator_of_the_scope() -> None:
    first, second = await with_gpus(2)
    whole, one = Browser(), Browser()
    await whole.follow("fleet", grid="gpu_utilization_ratio")
    await one.follow("node", second, grid="gpu_utilization_ratio")
    await send(first, 1, now(), gpu_samples([0.1, 0.2]))
    await send(second, 1, now(), gpu_samples([0.3, 0.4]))
    expected = [[first, 0, 0.1], [first, 1, 0.2], [second, 0, 0.3], [second, 1, 0.4]]
    for browser, cells in ((whole, expected), (one, expected[2:])):
        async with asyncio.timeout(SECONDS):
            while browser.grid.get("cells") != cells:
                await browser.hear()
        assert browser.grid["metric"] == "gpu_utilization_ratio"
        await browser.go()


async def test_a_page_that_is_not_looked_at_is_told_nothing_until_it_is() -> None:
    node, _deployment = await scene()
    hidden, other = Browser(), Browser()
    await hidden.follow("fleet")
    await hidden.say({"pause": True})
    await other.follow("fleet")
    at = now()
    for second in range(3):
        await send(node, second, at + second / 10, engine_samples("abc", float(second)))
        await other.until_value("launch:abc", "generation_tokens_per_second@engine", float(second))
    assert hidden.frames == 0
    await hidden.say({"pause": False})
    await hidden.until_value("launch:abc", "generation_tokens_per_second@engine", 2.0)
    assert hidden.frames == 1
    await hidden.go()
    await other.go()


async def test_a_scope_that_changes_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "REFRESH_SECONDS", 0.05)
    _node, deployment = await scene()
    browser = Browser()
    await browser.follow("deployment", deployment)
    assert browser.changed == 0
    await Replica.objects.aupdate(ended_at=timezone.now())
    async with asyncio.timeout(SECONDS):
        while not browser.changed:
            await browser.hear()
    await browser.go()


async def test_a_past_that_was_filled_in_is_worth_a_new_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub, "REFRESH_SECONDS", 0.05)
    monkeypatch.setattr(hub, "QUIET_SECONDS", 0.1)
    node, _deployment = await scene()
    other = (await sync_to_async(make_node)("box-2")).pk
    browser, elsewhere = Browser(), Browser()
    await browser.follow("node", node)
    await elsewhere.follow("node", other)
    filled({node})
    async with asyncio.timeout(SECONDS):
        while not browser.changed:
            await browser.hear()
    await send(other, 1, now(), node_samples())
    await elsewhere.until_seen(f"{other}/node")
    assert elsewhere.changed == 0
    await browser.go()
    await elsewhere.go()


async def test_what_is_older_than_what_is_shown_is_passed_over() -> None:
    """An agent sends again what was lost on the way."""
    node, _deployment = await scene()
    browser, at = Browser(), now()
    await browser.follow("fleet")
    key = "generation_tokens_per_second@engine"
    await send(node, 2, at, engine_samples("abc", 2.0))
    await browser.until_value("launch:abc", key, 2.0)
    await send(node, 1, at - 1, engine_samples("abc", 1.0))
    await send(node, 3, at + 1, engine_samples("abc", 3.0))
    await browser.until_value("launch:abc", key, 3.0)
    assert browser.frames == 2
    await browser.go()


async def test_nobody_follows_without_signing_in() -> None:
    assert not await Browser(AnonymousUser()).socket.connect()


async def test_a_malformed_subscription_is_answered_with_what_is_wrong() -> None:
    browser = Browser()
    await browser.socket.connect()
    for malformed in ({"subscribe": {"scope": "moon"}}, {"pause": 3}, [1], {"grid": "g" * 65}):
        await browser.say(malformed)
        await browser.hear()
    assert len(browser.errors) == 4
    await browser.go()


async def test_nothing_is_kept_once_nobody_looks() -> None:
    node, _deployment = await scene()
    browser = Browser()
    await browser.follow("fleet")
    await send(node, 1, now(), node_samples())
    await browser.until_seen(f"{node}/node")
    await browser.go()
    assert vars(live().hub)["_latest"] == {}
    assert vars(live().hub)["_tasks"] == []
