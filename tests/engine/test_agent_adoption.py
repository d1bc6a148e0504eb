"""Engines outlive their agent for a while: the next one takes them over, or they end."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.agent.heads import Heads
from engine.agent.supervisor import Supervisor
from engine.protocol.stats import EngineStats
from tests.engine.agent_bench import Bench, agent_bench
from tests.engine.agents import DEAF, SERVE, ScriptDriver, lives, spec_of, until

TALK = (
    "import sys; sys.stdin.readline(); print('before', flush=True)\n"
    "for line in sys.stdin: print('after', flush=True)"
)


async def abandon(bench: Bench) -> None:
    """As when the agent is killed: its sockets close, and nobody says goodbye."""
    bench.running.cancel()
    await asyncio.wait({bench.running})


@pytest.fixture
async def first(tmp_path: Path) -> AsyncIterator[Bench]:
    async with agent_bench(tmp_path) as bench:
        yield bench


async def test_another_agent_goes_on_with_the_same_process(first: Bench, tmp_path: Path) -> None:
    pid = await first.started(spec_of(TALK), "before")
    first.supervisor.take_logs()
    await abandon(first)
    async with agent_bench(tmp_path) as second:
        assert second.state().pid == pid
        assert lives(pid)
        second.ask(spec_of(TALK))
        await until(lambda: second.supervisor.generation == 1, "the desired state")
        assert (second.state().pid, second.state().restarts) == (pid, 0)
        await until(lambda: second.log() == ["before"], "what it said before")
        assert second.supervisor.take_logs() == [], "which was sent already"
        os.kill(pid, signal.SIGKILL)
        await until(lambda: second.state().pid not in (None, pid), "a restart")
        assert second.state().exit_code == -signal.SIGKILL


async def test_the_first_report_of_the_next_agent_knows_that_a_head_is_ready(
    first: Bench, tmp_path: Path
) -> None:
    spec = spec_of(SERVE, role="head")
    pid = await first.started(spec)
    await abandon(first)
    driver = ScriptDriver()
    driver.answers["l1"] = EngineStats(launch="l1", status="ready")
    supervisor = Supervisor(lambda: None, {"script": driver}, tmp_path)
    await supervisor.adopt()
    heads = Heads(supervisor, lambda: None)
    await heads.greet()
    (state,) = supervisor.states()
    assert (state.pid, state.status) == (pid, "running")
    assert [stats.status for stats in heads.stats()] == ["ready"]
    supervisor.processes["l1:head"].let_go()
    async with agent_bench(tmp_path) as third:
        assert third.state("l1:head").pid == pid


async def test_nothing_is_stopped_before_it_is_known_what_should_run(
    first: Bench, tmp_path: Path
) -> None:
    pid = await first.started(spec_of(SERVE))
    await abandon(first)
    async with agent_bench(tmp_path) as second:
        second.supervisor._changed()
        await asyncio.sleep(0)
        assert second.state().pid == pid
        second.ask(spec_of(SERVE, launch="l2"))
        await until(lambda: second.supervisor.processes.keys() == {"l2:rank0"}, "the new launch")
        assert not lives(pid)


async def test_an_engine_that_ended_meanwhile_is_reported_with_its_exit_code(
    first: Bench, tmp_path: Path
) -> None:
    pid = await first.started(spec_of(SERVE))
    await abandon(first)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not lives(pid), "its end")
    async with agent_bench(tmp_path) as second:
        state = await second.ended()
        assert (state.exit_code, state.restarts) == (-signal.SIGKILL, 1)


@pytest.mark.parametrize("script", [SERVE, DEAF])
async def test_an_engine_that_no_agent_comes_back_for_ends(
    first: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr("engine.agent.child.ORPHAN_SECONDS", 0.3)
    first.driver.stop_seconds = 0.2
    pid = await first.started(spec_of(script), "serving" if script == SERVE else "deaf")
    keeper = first.supervisor.processes["l1:rank0"].child
    assert keeper is not None
    await abandon(first)
    assert lives(pid)
    await until(lambda: not lives(pid), "the orphan's end")
    await until(lambda: not lives(keeper.keeper), "its keeper's end")
    assert not list(tmp_path.iterdir()), "no file is left"


async def test_an_engine_dies_with_its_keeper_and_is_started_again(first: Bench) -> None:
    pid = await first.started(spec_of(DEAF), "deaf")
    child = first.supervisor.processes["l1:rank0"].child
    assert child is not None
    os.kill(child.keeper, signal.SIGKILL)
    await until(lambda: first.state().pid not in (None, pid), "another process")
    assert not lives(pid)


async def test_what_a_keeper_that_was_killed_left_is_no_obstacle(
    first: Bench, tmp_path: Path
) -> None:
    pid = await first.started(spec_of(SERVE))
    child = first.supervisor.processes["l1:rank0"].child
    assert child is not None
    await abandon(first)
    os.kill(child.keeper, signal.SIGKILL)
    await until(lambda: not lives(pid), "the engine's end")
    async with agent_bench(tmp_path) as second:
        assert not second.supervisor.processes
        assert not list(tmp_path.glob("*.keeper"))


async def test_nothing_is_left_on_the_disk_that_tells_the_token(
    first: Bench, tmp_path: Path
) -> None:
    await first.started(spec_of(SERVE))
    (only,) = tmp_path.iterdir()
    assert only.is_socket()
    assert "launch-token-value" not in str(only)


async def test_an_orderly_end_leaves_neither_process_nor_file(first: Bench, tmp_path: Path) -> None:
    pid = await first.started(spec_of(SERVE))
    child = first.supervisor.processes["l1:rank0"].child
    assert child is not None
    await first.supervisor.stop_all()
    assert not lives(pid)
    await until(lambda: not lives(child.keeper), "the keeper's end")
    assert not list(tmp_path.iterdir())


async def test_a_state_folder_whose_path_is_long_works_too(tmp_path: Path) -> None:
    deep = tmp_path / ("long" * 30) / ("longer" * 20)
    deep.mkdir(parents=True)
    async with agent_bench(deep) as bench:
        pid = await bench.started(spec_of(SERVE))
        await abandon(bench)
        async with agent_bench(deep) as second:
            assert second.state().pid == pid
