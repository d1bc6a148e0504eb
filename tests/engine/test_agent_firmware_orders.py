"""What the panel orders is installed once, checked before, and told however it ends."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from engine.agent.firmware.fwupd import Fwupd
from engine.agent.firmware.orders import Orders
from engine.protocol.firmware import FirmwareOrder, FirmwareState
from tests.peers.fwupd import EC, NEW, NEW_SHA256, FakeFwupd, FakeLogind, fake_fwupd, private_bus
from tests.peers.fwupd import served as served_on

SECONDS = 10.0
TOKEN = "tdn_token"


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with private_bus(tmp_path_factory.mktemp("bus")) as address:
        yield address


@pytest.fixture
async def fwupd(bus: str) -> AsyncIterator[FakeFwupd]:
    async with fake_fwupd(bus) as fake:
        yield fake


class Panel:
    """Hands out one image, to who has the node's token."""

    def __init__(self) -> None:
        self.content = NEW
        self.served = 0
        self.break_first = 0
        self.url = ""
        self.needs_token = True
        self.tokens: list[str | None] = []
        self.hold = False
        self.asked, self.released = asyncio.Event(), asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("Authorization"))
        if self.needs_token and self.tokens[-1] != f"Bearer {TOKEN}":
            return web.Response(status=404)
        self.served += 1
        self.asked.set()
        if self.hold:
            await self.released.wait()
        begin = request.http_range.start or 0
        body = self.content[begin:]
        response = web.StreamResponse(status=206 if begin else 200)
        response.content_length = len(body)
        await response.prepare(request)
        if self.break_first:
            await response.write(body[: self.break_first])
            self.break_first = 0
            assert request.transport is not None
            request.transport.abort()
            return response
        await response.write(body)
        return response


@pytest.fixture
async def panel() -> AsyncIterator[Panel]:
    panel = Panel()
    application = web.Application()
    application.router.add_get("/firmware/fetch/{token}/{name}", panel.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    panel.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield panel
    panel.released.set()
    await runner.cleanup()


class Agent:
    """Orders with what surrounds them; `until` waits for what they tell."""

    def __init__(self, folder: Path, panel: Panel, bus: str, **options: object) -> None:
        self.news = asyncio.Event()
        stall = float(str(options.pop("stall", 5.0)))
        self.orders = Orders(
            folder,
            panel.url,
            TOKEN,
            self.news.set,
            fwupd=Fwupd(bus, stall_seconds=stall),
            bus_address=bus,
            **{"boot_id": "first", **options},  # type: ignore[arg-type]
        )

    async def until(self, wanted: Callable[[FirmwareState], bool]) -> FirmwareState:
        async with asyncio.timeout(SECONDS):
            while True:
                for state in self.orders.states():
                    if wanted(state):
                        return state
                self.news.clear()
                await self.news.wait()

    async def ended(self) -> FirmwareState:
        return await self.until(lambda state: state.phase in ("staged", "done", "failed"))


@asynccontextmanager
async def agent(folder: Path, panel: Panel, bus: str, **options: object) -> AsyncIterator[Agent]:
    agent = Agent(folder, panel, bus, **options)
    running = asyncio.create_task(agent.orders.run())
    try:
        yield agent
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def order(**changes: object) -> FirmwareOrder:
    fields: dict[str, object] = {
        "id": 7,
        "channel": "fwupd",
        "key": f"fwupd:{EC}",
        "path": "/firmware/fetch/secret/ec.cab",
        "sha256": NEW_SHA256,
        "size": len(NEW),
        "version": "1.0.4",
    }
    return FirmwareOrder(**{**fields, **changes})  # type: ignore[arg-type]


async def test_it_is_fetched_checked_and_installed(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        assert (await one.ended()).phase == "done"
        one.orders.set_wanted([order()])
        await asyncio.sleep(0)
    assert [(device, content) for device, content, _options in fwupd.installed] == [(EC, NEW)]
    assert fwupd.installed[0][2]["allow-older"] is False
    assert not list((tmp_path / "firmware").glob("*.cab"))


async def test_what_runs_after_a_reboot_is_staged(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    fwupd.mode = "staged"
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        state = await one.ended()
    assert (state.phase, "restarted" in str(state.reason)) == ("staged", True)


async def test_its_progress_is_told(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    fwupd.mode = "stall"
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        await one.until(lambda state: (state.phase, state.percent) == ("installing", 40.0))
        fwupd.go_on.set()
        assert (await one.ended()).phase == "done"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sha256": hashlib.sha256(b"other").hexdigest()}, "It was not used"),
        ({"size": len(NEW) + 1}, "it should have"),
        ({"size": 3}, "it should have 3"),
        ({"path": "//elsewhere.example/x"}, "another host"),
        ({"path": "/firmware/fetch/secret/x/y/z"}, "status 404"),
        ({"key": "fwupd:unknown"}, "does not know this device"),
    ],
)
async def test_what_is_not_what_was_ordered_is_never_installed(
    tmp_path: Path,
    panel: Panel,
    bus: str,
    fwupd: FakeFwupd,
    changes: dict[str, object],
    words: str,
) -> None:
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order(**changes)])
        state = await one.ended()
    assert state.phase == "failed"
    assert words in str(state.reason)
    assert fwupd.installed == []


async def test_what_lvfs_offers_is_fetched_from_where_fwupd_says(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def address(release: object) -> str:
        asked.append(release)
        return f"{panel.url}/firmware/fetch/of/lvfs"

    panel.needs_token = False
    monkeypatch.setattr("engine.agent.firmware.orders.address_of", address)
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order(path="", size=0)])
        assert (await one.ended()).phase == "done"
    assert len(asked) == 1
    assert panel.tokens == [None]


async def test_what_lvfs_does_not_offer_is_not_looked_for(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order(path="", sha256="0" * 64)])
        assert "offers no archive" in str((await one.ended()).reason)


async def test_an_agent_that_was_stopped_while_fetching_begins_anew(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    panel.hold = True
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        async with asyncio.timeout(SECONDS):
            await panel.asked.wait()
        assert [state.phase for state in one.orders.states()] == ["fetching"]
    panel.hold = False
    async with agent(tmp_path, panel, bus) as other:
        other.orders.set_wanted([order()])
        assert (await other.ended()).phase == "done"
    assert len(fwupd.installed) == 1


async def test_an_order_withdrawn_while_fetching_is_not_installed(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    panel.hold = True
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        async with asyncio.timeout(SECONDS):
            await panel.asked.wait()
        one.orders.set_wanted([])
        panel.released.set()
        one.orders.set_wanted([order(id=8)])
        await one.until(lambda state: (state.id, state.phase) == (8, "done"))
    assert len(fwupd.installed) == 1


async def test_a_fetch_that_breaks_off_goes_on(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    panel.break_first = 10
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        assert (await one.ended()).phase == "done"
    assert panel.served == 2
    assert fwupd.installed[0][1] == NEW


async def test_a_refusal_is_told_in_fwupds_words(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    fwupd.mode = "refuse"
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        state = await one.ended()
    assert (state.phase, str(state.reason)) == (
        "failed",
        "fwupd refuses: signature is not valid",
    )


async def test_success_that_changes_nothing_is_a_failure(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    fwupd.mode = "same"
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        assert "version 1.0.1 runs" in str((await one.ended()).reason)


async def test_a_stall_ends_with_a_sentence(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    fwupd.mode = "stall"
    async with agent(tmp_path, panel, bus, stall=0.3) as one:
        one.orders.set_wanted([order()])
        state = await one.ended()
    assert state.phase == "failed"
    assert "no progress" in str(state.reason)


async def test_a_daemon_that_vanishes_ends_with_a_sentence(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    fwupd.mode = "gone"
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        state = await one.ended()
    assert state.phase == "failed"
    assert "fwupd" in str(state.reason)


async def test_an_agent_started_anew_looks_instead_of_installing_again(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    fwupd.mode = "stall"
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        await one.until(lambda state: state.phase == "installing")
        async with asyncio.timeout(SECONDS):
            await fwupd.began.wait()
    async with agent(tmp_path, panel, bus) as other:
        other.orders.set_wanted([order()])
        fwupd.go_on.set()
        assert (await other.ended()).phase == "done"
    assert len(fwupd.installed) == 1
    assert panel.served == 1


async def test_what_broke_off_unfinished_is_said_to_be(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    fwupd.mode = "stall"
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        async with asyncio.timeout(SECONDS):
            await fwupd.began.wait()
        fwupd.mode = "same"
        fwupd.status = 1
    async with agent(tmp_path, panel, bus) as other:
        other.orders.set_wanted([order()])
        state = await other.ended()
    assert "broke off: the agent was started anew" in str(state.reason)
    assert len(fwupd.installed) == 1


async def test_an_end_is_told_again_by_the_next_agent(
    tmp_path: Path, panel: Panel, bus: str, fwupd: FakeFwupd
) -> None:
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        await one.ended()
    async with agent(tmp_path, panel, bus) as other:
        assert [state.phase for state in other.orders.states()] == ["done"]
        other.orders.set_wanted([])
        assert other.orders.states() == []
    assert not list((tmp_path / "firmware").glob("*.json"))


async def test_a_reboot_is_asked_for_once(tmp_path: Path, panel: Panel, bus: str) -> None:
    logind = FakeLogind()
    wanted = order(channel="reboot", key="", path="")
    async with served_on(bus, "org.freedesktop.login1", "/org/freedesktop/login1", logind):
        async with agent(tmp_path, panel, bus, allow_reboot=True) as one:
            one.orders.set_wanted([wanted])
            async with asyncio.timeout(SECONDS):
                await logind.asked.wait()
        async with agent(tmp_path, panel, bus, allow_reboot=True, boot_id="second") as other:
            other.orders.set_wanted([wanted])
            assert (await other.ended()).phase == "done"
    assert logind.times == 1


async def test_a_node_that_does_not_go_down_is_told(tmp_path: Path, panel: Panel, bus: str) -> None:
    logind = FakeLogind()
    async with (
        served_on(bus, "org.freedesktop.login1", "/org/freedesktop/login1", logind),
        agent(tmp_path, panel, bus, allow_reboot=True, reboot_seconds=0.05) as one,
    ):
        one.orders.set_wanted([order(channel="reboot", key="", path="")])
        assert "has not gone down" in str((await one.ended()).reason)


async def test_without_leave_the_node_is_not_restarted(
    tmp_path: Path, panel: Panel, bus: str
) -> None:
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order(channel="reboot", key="", path="")])
        state = await one.ended()
    assert state.phase == "failed"
    assert "--allow-reboot" in str(state.reason)


async def test_without_fwupd_it_says_so(tmp_path: Path, panel: Panel, bus: str) -> None:
    async with agent(tmp_path, panel, bus) as one:
        one.orders.set_wanted([order()])
        assert "is not installed" in str((await one.ended()).reason)
