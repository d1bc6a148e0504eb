"""A process that ended unasked is started again, with pauses that grow, and not for ever."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agent.heads import Heads
from engine.agent.process import EngineProcess
from engine.agent.restart import FAILURES_UNTIL_EXITED, LEAST_SECONDS, STEADY_SECONDS, judge_end
from engine.errors import said
from engine.protocol.launch import EPOCH_OVER, GIVEN_UP
from engine.protocol.stats import EngineStats
from tests.engine.agent_bench import Bench, agent_bench
from tests.engine.agents import SERVE, spec_of, until

AT_WORK = (
    "import os, sys; os.write(int(os.environ['TANDEM_PULSE_FD']), b'.!'); sys.stdin.readline(); "
    "sys.stdin.read()"
)
codes = st.none() | st.integers(-15, 255).filter(lambda code: code not in (EPOCH_OVER, GIVEN_UP))


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with agent_bench(tmp_path) as bench:
        yield bench


def test_the_pauses_after_failures_in_a_row() -> None:
    delays, failures = [], 0
    for _ in range(FAILURES_UNTIL_EXITED):
        verdict = judge_end(failures, 1, lived=2.0)
        failures = verdict.failures
        delays.append(verdict.delay)
    assert delays == [0.0, 1.0, 2.0, 4.0, 8.0, None]


@given(st.integers(0, 5), codes)
def test_a_minute_of_life_makes_up_for_every_failure(failures: int, code: int | None) -> None:
    verdict = judge_end(failures, code, STEADY_SECONDS)
    assert (verdict.failures, verdict.delay) == (1, 0.0)


@given(st.lists(st.tuples(codes, st.floats(0, STEADY_SECONDS * 0.99)), min_size=6))
def test_no_crash_loop_goes_on_for_ever(ends: list[tuple[int | None, float]]) -> None:
    failures, tries = 0, 0
    for code, lived in ends:
        tries += 1
        verdict = judge_end(failures, code, lived)
        failures = verdict.failures
        if verdict.delay is None:
            break
    assert tries == FAILURES_UNTIL_EXITED


@given(st.integers(0, 5), st.floats(0.5, 1e6))
def test_an_epoch_that_is_over_costs_neither_time_nor_credit(failures: int, lived: float) -> None:
    verdict = judge_end(failures, EPOCH_OVER, lived)
    assert verdict.delay == 0.0
    assert verdict.failures == (failures if lived < STEADY_SECONDS else 0)


@pytest.mark.parametrize("code", [1, EPOCH_OVER])
def test_a_clock_that_is_set_back_costs_no_time(code: int) -> None:
    assert judge_end(0, code, -3600.0).delay == LEAST_SECONDS


@given(st.integers(0, 5), st.floats(0, 1e6))
def test_what_another_start_cannot_cure_is_not_started_again(failures: int, lived: float) -> None:
    assert judge_end(failures, GIVEN_UP, lived).delay is None


@given(st.integers(0, 5), st.sampled_from([0, -9, -15]), st.floats(0.5, 1e6))
def test_one_that_worked_until_it_was_killed_is_back_at_once(
    failures: int, code: int, lived: float
) -> None:
    verdict = judge_end(failures, code, lived, at_work=True)
    assert (verdict.failures, verdict.delay) == (1, 0.0)


@pytest.mark.parametrize("code", [1, -signal.SIGSEGV, -signal.SIGABRT])
def test_one_that_ends_itself_is_in_a_crash_loop_however_well_it_started(code: int) -> None:
    assert judge_end(3, code, 2.0, at_work=True) == judge_end(3, code, 2.0)
    assert judge_end(3, code, 2.0).delay == 4.0


async def test_a_killed_process_is_back_with_the_same_spec(bench: Bench) -> None:
    script = "import sys; print(len(sys.stdin.readline()) > 9, flush=True); sys.stdin.read()"
    first = await bench.started(spec_of(script), "True")
    os.kill(first, signal.SIGKILL)
    await until(lambda: bench.state().pid not in (None, first), "another process")
    state = bench.state()
    assert (state.status, state.restarts, state.exit_code) == ("running", 1, -9)
    assert str(state.reason) == "It was killed by signal 9 (SIGKILL)."
    await until(lambda: bench.log().count("True") == 2, "the spec, once more")


async def test_however_often_a_rank_at_work_is_killed_it_is_back_at_once(bench: Bench) -> None:
    bench.ask(spec_of(AT_WORK))
    for round_ in range(FAILURES_UNTIL_EXITED + 1):
        process = await _at_work(bench, round_)
        os.kill(process.pid or 0, signal.SIGKILL)
    await _at_work(bench, FAILURES_UNTIL_EXITED + 1)
    assert not any("in 1 s" in line for line in bench.log())


async def test_a_rank_that_eats_up_the_memory_has_failed_however_well_it_started(
    bench: Bench,
) -> None:
    bench.ask(spec_of(AT_WORK))
    for round_ in range(2):
        process = await _at_work(bench, round_)
        process.end_because(said("It took too much."), own_fault=True)
    await until(lambda: "Starting it again in 1 s" in "".join(bench.log()), "a pause")


async def _at_work(bench: Bench, restarts: int) -> EngineProcess:
    processes = bench.supervisor.processes
    await until(lambda: bool(processes), "a start")
    process = next(iter(processes.values()))

    def works() -> bool:
        child = process.child
        return process.restarts == restarts and child is not None and child.at_work

    await until(works, "work")
    return process


@pytest.mark.parametrize("code", [0, 1, EPOCH_OVER])
async def test_a_process_that_will_be_started_again_is_never_called_exited(
    bench: Bench, code: int
) -> None:
    told: list[str] = []
    bench.told = lambda: told.extend(state.status for state in bench.supervisor.states())
    bench.ask(spec_of(f"import sys; sys.stdin.readline(); sys.exit({code})"))
    await until(lambda: "l1:rank0" in bench.supervisor.processes, "a start")
    await until(lambda: bench.state().restarts >= 2, "two more starts")
    assert "exited" not in told
    assert bench.state().exit_code == code


async def test_a_process_that_waits_for_its_next_start_can_be_stopped(bench: Bench) -> None:
    bench.ask(spec_of("import sys; sys.stdin.readline(); sys.exit(1)"))
    await until(lambda: "l1:rank0" in bench.supervisor.processes, "a start")
    await until(lambda: bench.state().restarts >= 2 and bench.state().pid is None, "a pause")
    bench.ask()
    await until(lambda: not bench.supervisor.processes, "the end")


async def test_a_crash_loop_ends_as_exited_with_the_last_words(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.restart.FAILURES_UNTIL_EXITED", 2)
    bench.ask(spec_of("import sys; sys.stdin.readline(); sys.exit('no such device')"))
    state = await bench.exited()
    assert (state.status, state.restarts) == ("exited", 1)
    assert str(state.reason) == "It exited with code 1: no such device"
    assert "no such device" in state.log_tail


async def test_nothing_is_told_of_a_head_that_has_died_since(bench: Bench) -> None:
    bench.driver.answers["l1"] = EngineStats(launch="l1", status="ready", steps=9)
    told: list[list[EngineStats]] = []
    heads = Heads(bench.supervisor, lambda: None)
    pid = await bench.started(spec_of(SERVE, role="head"))
    await heads.greet()
    assert [stats.steps for stats in heads.stats()] == [9]
    bench.told = lambda: told.extend(
        heads.stats() for state in bench.supervisor.states() if state.restarts
    )
    os.kill(pid, signal.SIGKILL)
    await until(lambda: len(told) > 1, "the restart")
    assert not any(told)
    assert bench.state("l1:head").status == "starting"
