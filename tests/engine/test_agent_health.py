"""A process that lives but does not work is ended; a pause of the agent is nobody's fault."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agent.health import PULSE_TICKS, STOPPED_TICKS, Health
from tests.engine.agent_bench import Bench, agent_bench
from tests.engine.agents import SERVE, lives, spec_of, until

BEAT_ONCE = "import os, time; os.write(int(os.environ['TANDEM_PULSE_FD']), b'.'); time.sleep(600)"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with agent_bench(tmp_path) as bench:
        yield bench


def test_a_stop_has_to_last() -> None:
    health = Health()
    looks = [True] * (STOPPED_TICKS - 1) + [False] + [True] * STOPPED_TICKS
    verdicts = [health.tick(stopped, pulses=0) for stopped in looks]
    assert not any(verdicts[:-1])
    assert "SIGSTOP" in str(verdicts[-1])


def test_silence_counts_from_the_first_pulse_on() -> None:
    health = Health()
    assert not any(health.tick(False, pulses=0) for _ in range(10 * PULSE_TICKS))
    assert not any(health.tick(False, pulses=1) for _ in range(PULSE_TICKS))
    verdict = health.tick(False, pulses=1)
    assert str(verdict) == ("It showed no sign of life for 10 s; ended so that it can start anew.")


@given(st.lists(st.integers(1, 3), min_size=1, max_size=200))
def test_whoever_beats_at_every_look_is_left_alone(beats: list[int]) -> None:
    health, pulses = Health(), 0
    for beat in beats:
        pulses += beat
        assert health.tick(False, pulses) is None


async def test_a_stopped_process_is_ended_and_started_again(bench: Bench) -> None:
    pid = await bench.started(spec_of(SERVE))
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: bench.state().pid not in (None, pid), "another process")
    assert not lives(pid)
    assert str(bench.state().reason).startswith("It was stopped by a signal (SIGSTOP);")


async def test_an_engine_with_a_stopped_keeper_is_ended_and_started_again(bench: Bench) -> None:
    pid = await bench.started(spec_of(SERVE))
    child = bench.supervisor.processes["l1:rank0"].child
    assert child is not None
    os.kill(child.keeper, signal.SIGSTOP)
    await until(lambda: bench.state().pid not in (None, pid), "another process")
    assert not lives(pid)
    assert not lives(child.keeper)


async def test_a_process_whose_pulse_stays_away_is_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.health.PULSE_TICKS", 2)
    bench.ask(spec_of(BEAT_ONCE))
    state = await bench.ended()
    assert "no sign of life" in str(state.reason)
