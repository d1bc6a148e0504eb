"""A process that is started again takes the place of a spare that waits already."""

import os
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from engine.agent.process import EngineProcess
from tests.engine.agent_bench import Bench, agent_bench
from tests.engine.agents import lives, spec_of, until

WORK = (
    "import os, sys\nsys.stdin.readline()\nprint('pid', os.getpid(), flush=True)\nsys.stdin.read()"
)
"""Like a rank: waits for its spec, then says who it is."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.agent.spares.SETTLED_SECONDS", 0.0)
    monkeypatch.setattr("engine.agent.spares.TICK_SECONDS", 0.05)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with agent_bench(tmp_path) as bench:
        yield bench


async def spare_of(bench: Bench, key: str = "l1:rank0") -> int:
    process = bench.supervisor.processes[key]
    await until(lambda: process.spare is not None and process.spare.pid is not None, "a spare")
    assert process.spare is not None
    assert process.spare.pid is not None
    return process.spare.pid


async def test_the_spare_becomes_the_process(bench: Bench) -> None:
    pid = await _working(bench)
    spare = await spare_of(bench)
    assert spare != pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: bench.state().pid == spare, "the spare in its place")
    await until(lambda: f"pid {spare}" in bench.log(), "its work")
    assert await spare_of(bench) not in (pid, spare), "there is another one"


async def test_a_spare_costs_little_while_it_is_none_of_the_work(bench: Bench) -> None:
    pid = await _working(bench)
    spare = await spare_of(bench)
    own = os.getpriority(os.PRIO_PROCESS, pid)
    if os.geteuid() == 0:
        await until(lambda: os.getpriority(os.PRIO_PROCESS, spare) > own, "a low priority")
    os.kill(pid, signal.SIGKILL)
    await until(lambda: f"pid {spare}" in bench.log(), "its work")
    assert os.getpriority(os.PRIO_PROCESS, spare) == own


async def test_spares_go_when_nobody_wants_their_process_any_more(bench: Bench) -> None:
    await _working(bench)
    spare = await spare_of(bench)
    bench.ask()
    await until(lambda: not bench.supervisor.processes and not lives(spare), "both ends")


async def test_a_spare_does_not_outlive_its_agent(bench: Bench) -> None:
    pid = await _working(bench)
    spare = await spare_of(bench)
    bench.running.cancel()
    await until(lambda: not lives(spare), "the spare's end")
    assert lives(pid)


async def test_a_spare_that_died_is_replaced_but_not_for_ever(bench: Bench) -> None:
    await _working(bench)
    process = bench.supervisor.processes["l1:rank0"]
    seen = set()
    for _ in range(3):
        spare = await spare_of(bench)
        seen.add(spare)
        os.kill(spare, signal.SIGKILL)
        await until(partial(_lost, process, spare), "its end")
    assert len(seen) == 3
    bench.supervisor.spares.tend(now=float("inf"))
    assert process.spare is None


async def test_they_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_SPARES", "0")
    async with agent_bench(tmp_path) as bench:
        await _working(bench)
        assert not bench.supervisor.spares.enabled


async def test_when_memory_is_short_spares_go_first(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.watch.available_bytes", lambda: 1)
    monkeypatch.setattr("engine.agent.spares.available_bytes", lambda: None)
    bench.ask(spec_of(WORK, memory_floor=1 << 30))
    await until(lambda: "l1:rank0" in bench.supervisor.processes, "a start")
    await until(lambda: any("pid" in line for line in bench.log()), "its work")
    pid, spare = bench.state().pid, await spare_of(bench)
    await until(lambda: not lives(spare), "the spare's end")
    assert bench.state().pid == pid


def _lost(process: EngineProcess, spare: int) -> bool:
    return process.spare is None or process.spare.pid not in (None, spare)


async def _working(bench: Bench) -> int:
    bench.ask(spec_of(WORK))
    await until(lambda: "l1:rank0" in bench.supervisor.processes, "a start")
    await until(lambda: any("pid" in line for line in bench.log()), "its work")
    pid = bench.state().pid
    assert pid is not None
    return pid
