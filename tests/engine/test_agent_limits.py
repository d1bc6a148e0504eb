"""Limits are set, reported with what became of them, and taken back, even after a crash."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from engine.agent.heads import Heads
from engine.agent.inventory import take_inventory
from engine.agent.limits.devices import Unsettable
from engine.agent.limits.keeper import LimitKeeper
from engine.agent.limits.originals import FILE
from engine.agent.node import NodeAgent
from engine.protocol.agent import Accelerator, Desired, Limits, LimitState
from engine.protocol.stats import EngineStats
from tests.engine.agent_bench import agent_bench
from tests.engine.agents import SERVE, spec_of, until
from tests.engine.control_peer import end

DENIED = "only root"


class FakeDevices:
    """Two accelerators that remember; the box they stand for goes on when an agent dies."""

    def __init__(self) -> None:
        self.power = {0: 700_000, 1: 500_000}
        self.clocks: dict[int, int] = {}
        self.refuses: set[str] = set()
        self.gone = False

    def uuids(self) -> list[str]:
        if self.gone:
            raise Unsettable("The NVIDIA driver is not installed.")
        return ["GPU-a", "GPU-b"]

    def power_limit(self, number: int) -> int:
        self._check("read")
        return self.power[number]

    def power_range(self, number: int) -> tuple[int, int]:
        return 200_000, 700_000

    def set_power_limit(self, number: int, milliwatts: int) -> None:
        self._check("power")
        self.power[number] = milliwatts

    def lock_clock(self, number: int, megahertz: int) -> None:
        self._check("clock")
        self.clocks[number] = megahertz

    def free_clock(self, number: int) -> None:
        self._check("clock")
        self.clocks.pop(number, None)

    def _check(self, what: str) -> None:
        if what in self.refuses:
            raise Unsettable(DENIED)


H100S = [
    Accelerator(index=4, vendor="nvidia", name="H100", uuid="GPU-a"),
    Accelerator(index=5, vendor="nvidia", name="H100", uuid="GPU-b"),
]


class World:
    def __init__(self, folder: Path, heads: Heads, devices: FakeDevices) -> None:
        self.devices = devices
        self.reports: list[list[LimitState]] = []
        self.keeper = LimitKeeper(folder, heads, H100S, self._changed, devices)

    def _changed(self) -> None:
        self.reports.append(self.keeper.states())

    def state(self, what: str, target: str) -> LimitState | None:
        found = [s for s in self.keeper.states() if (s.what, s.target) == (what, target)]
        return found[0] if found else None

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        await until(condition, what)


@contextlib.asynccontextmanager
async def running(folder: Path, devices: FakeDevices, heads: Heads) -> AsyncIterator[World]:
    """Afterwards it is gone without a word, as after a crash."""
    world = World(folder, heads, devices)
    task = asyncio.create_task(world.keeper.run())
    try:
        yield world
    finally:
        await end(task)


@pytest.fixture
def heads() -> Heads:
    class Nobody:
        processes: dict[str, object] = {}

    return Heads(Nobody(), lambda: None)  # type: ignore[arg-type]  # None of its processes is asked.


async def test_power_and_clock_are_set_and_set_back(tmp_path: Path, heads: Heads) -> None:
    devices = FakeDevices()
    async with running(tmp_path, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=300.0, clock_hertz=1.2e9, why="nights"))
        await world.until(lambda: devices.power == {0: 300_000, 1: 300_000}, "lower limits")
        await world.until(lambda: devices.clocks == {0: 1200, 1: 1200}, "lower clocks")
        await world.until(lambda: len(world.keeper.states()) == 4, "a report")
        assert world.state("power", "gpu:4") == LimitState(
            what="power", target="gpu:4", value=300.0
        )
        assert world.state("clock", "gpu:5") == LimitState(
            what="clock", target="gpu:5", value=1.2e9
        )
        world.keeper.set_wanted(Limits())
        await world.until(lambda: devices.power == {0: 700_000, 1: 500_000}, "what was before")
        await world.until(lambda: not devices.clocks, "free clocks")
        await world.until(lambda: not world.keeper.states(), "nothing to report")
        assert world.reports[-1] == []
        assert (tmp_path / FILE).read_text() == "{}"


async def test_a_limit_never_raises_and_never_goes_below_what_the_driver_allows(
    tmp_path: Path, heads: Heads
) -> None:
    devices = FakeDevices()
    async with running(tmp_path, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=600.0))
        await world.until(lambda: devices.power[0] == 600_000, "one lower limit")
        await world.until(lambda: len(world.keeper.states()) == 2, "a report")
        assert devices.power[1] == 500_000
        state = world.state("power", "gpu:5")
        assert state is not None
        assert (state.value, str(state.reason)) == (
            500.0,
            "It was limited to this before, and is not raised.",
        )
        world.keeper.set_wanted(Limits(power_watts=100.0))
        await world.until(lambda: devices.power == {0: 200_000, 1: 200_000}, "the least")
        await world.until(lambda: _value(world.state("power", "gpu:4")) == 200.0, "a report")
        state = world.state("power", "gpu:4")
        assert state is not None
        assert str(state.reason) == "The driver allows no less than 200 W."


def _value(state: LimitState | None) -> float | None:
    return state.value if state else None


async def test_an_agent_that_stops_sets_back_what_it_limited(tmp_path: Path, heads: Heads) -> None:
    devices = FakeDevices()
    async with running(tmp_path, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=300.0))
        await world.until(lambda: devices.power[1] == 300_000, "lower limits")
    await world.keeper.release()
    assert devices.power == {0: 700_000, 1: 500_000}


async def test_a_new_agent_knows_what_was_before_the_one_that_crashed(
    tmp_path: Path, heads: Heads
) -> None:
    devices = FakeDevices()
    async with running(tmp_path, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=300.0, clock_hertz=1e9))
        await world.until(lambda: devices.clocks == {0: 1000, 1: 1000}, "limits")
    async with running(tmp_path, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=400.0))
        await world.until(lambda: devices.power == {0: 400_000, 1: 400_000}, "other limits")
        await world.until(lambda: not devices.clocks, "free clocks")
        world.keeper.set_wanted(Limits())
        await world.until(lambda: devices.power == {0: 700_000, 1: 500_000}, "what was before")


async def test_without_a_word_from_the_panel_the_limits_of_a_crashed_agent_end(
    tmp_path: Path, heads: Heads, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = FakeDevices()
    async with running(tmp_path, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=300.0))
        await world.until(lambda: devices.power[1] == 300_000, "lower limits")
    monkeypatch.setattr("engine.agent.limits.keeper.GRACE_SECONDS", 0.0)
    async with running(tmp_path, devices, heads) as world:
        await world.until(lambda: devices.power == {0: 700_000, 1: 500_000}, "what was before")


async def test_what_the_driver_refuses_is_told_with_its_reason(
    tmp_path: Path, heads: Heads
) -> None:
    devices = FakeDevices()
    devices.refuses = {"power"}
    async with running(tmp_path, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=300.0, clock_hertz=1.2e9))
        await world.until(lambda: len(world.keeper.states()) == 4, "a report")
        state = world.state("power", "gpu:4")
        assert state is not None
        assert (state.value, str(state.reason)) == (None, DENIED)
        assert _value(world.state("clock", "gpu:4")) == 1.2e9
        world.keeper.set_wanted(Limits())
        await world.until(lambda: not world.keeper.states(), "nothing to set back")


async def test_a_limit_that_cannot_be_taken_back_stays_in_the_report(
    tmp_path: Path, heads: Heads
) -> None:
    devices = FakeDevices()
    async with running(tmp_path, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=300.0))
        await world.until(lambda: len(world.keeper.states()) == 2, "a report")
        devices.refuses = {"power"}
        world.keeper.set_wanted(Limits())
        await world.until(lambda: _value(world.state("power", "gpu:4")) is None, "a failure")
        state = world.state("power", "gpu:4")
        assert state is not None
        assert "could not be set back" in str(state.reason)


async def test_nothing_is_changed_that_could_not_be_remembered(
    tmp_path: Path, heads: Heads
) -> None:
    devices, nowhere = FakeDevices(), tmp_path / "gone"
    async with running(nowhere, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=300.0))
        await world.until(lambda: len(world.keeper.states()) == 2, "a report")
        state = world.state("power", "gpu:4")
        assert state is not None
        assert "cannot be written down" in str(state.reason)
        assert devices.power == {0: 700_000, 1: 500_000}


async def test_without_a_driver_every_accelerator_has_its_reason(
    tmp_path: Path, heads: Heads
) -> None:
    devices = FakeDevices()
    devices.gone = True
    async with running(tmp_path, devices, heads) as world:
        world.keeper.set_wanted(Limits(power_watts=300.0))
        await world.until(lambda: len(world.keeper.states()) == 2, "a report")
        assert [(s.target, s.value) for s in world.keeper.states()] == [
            ("gpu:4", None),
            ("gpu:5", None),
        ]


async def test_a_node_without_accelerators_says_so(tmp_path: Path, heads: Heads) -> None:
    devices = FakeDevices()
    devices.gone = True
    keeper = LimitKeeper(tmp_path, heads, [], lambda: None, devices)
    task = asyncio.create_task(keeper.run())
    keeper.set_wanted(Limits(power_watts=300.0))
    await until(lambda: bool(keeper.states()), "a report")
    [state] = keeper.states()
    assert (state.target, state.value) == ("node", None)
    assert str(state.reason) == "This node has no accelerator that could be limited."
    await end(task)


async def test_heads_are_told_their_batch_cap_and_told_again_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.limits.keeper.LOOK_SECONDS", 0.05)
    async with agent_bench(tmp_path) as bench:
        heads = Heads(bench.supervisor, lambda: None)
        async with running(tmp_path, FakeDevices(), heads) as world:
            await bench.started(spec_of(SERVE, role="head"))
            world.keeper.set_wanted(Limits(batch_caps={"l1": 4, "l2": 2}))
            await world.until(lambda: len(world.keeper.states()) == 2, "a report")
            await world.until(
                lambda: str(_reason(world.state("batch", "l1"))) == "The head does not answer.",
                "a silent head",
            )
            assert "does not run on this node" in str(_reason(world.state("batch", "l2")))
            bench.driver.answers["l1"] = EngineStats(launch="l1", status="ready")
            await world.until(lambda: bench.driver.held == [("l1", 4)], "a cap")
            await world.until(lambda: _value(world.state("batch", "l1")) == 4, "its state")
            process = bench.supervisor.processes["l1:head"]
            process.restarts += 1  # As when it died and was started anew.
            await world.until(lambda: bench.driver.held == [("l1", 4)] * 2, "the cap again")
            world.keeper.set_wanted(Limits())
            await world.until(lambda: bench.driver.held[-1] == ("l1", None), "no cap")
            assert not world.keeper.states()


async def test_without_a_word_from_the_panel_heads_are_freed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.limits.keeper.LOOK_SECONDS", 0.05)
    monkeypatch.setattr("engine.agent.limits.keeper.GRACE_SECONDS", 0.0)
    async with agent_bench(tmp_path) as bench:
        heads = Heads(bench.supervisor, lambda: None)
        await bench.started(spec_of(SERVE, role="head"))
        bench.driver.answers["l1"] = EngineStats(launch="l1", status="ready")
        async with running(tmp_path, FakeDevices(), heads) as world:
            await world.until(lambda: bench.driver.held == [("l1", None)], "no cap")


async def test_a_node_is_held_to_its_desired_state_and_reports_what_became_of_it(
    tmp_path: Path,
) -> None:
    inventory = take_inventory("127.0.0.1")
    agent = NodeAgent("http://127.0.0.1:1", "token", inventory, tmp_path)
    agent.limits = LimitKeeper(tmp_path, agent.heads, H100S, agent.wake.set, FakeDevices())
    running = asyncio.create_task(agent.limits.run())
    agent.desired(Desired(1, [], limits=Limits(power_watts=300.0)))
    await until(lambda: len(agent.observed().limits) == 2, "a report")
    assert [state.value for state in agent.observed().limits] == [300.0, 300.0]
    assert agent.wake.is_set()
    await end(running)


def _reason(state: LimitState | None) -> object:
    return state.reason if state else None
