"""Before memory runs out, the process that explains it has to go, with the numbers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agent.guard import GIB, Weighed, choose
from tests.engine.agent_bench import Bench, agent_bench
from tests.engine.agents import SERVE, spec_of

FLOOR = 4 * GIB


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with agent_bench(tmp_path) as bench:
        yield bench


def test_nothing_is_ended_while_half_the_floor_is_free() -> None:
    big = Weighed("a", 90 * GIB, None)
    assert choose([big], 2 * GIB, FLOOR) is None
    assert choose([big], None, FLOOR) is None
    assert choose([], 0, FLOOR) is None


def test_the_one_most_above_its_plan_goes() -> None:
    planned = Weighed("planned", 10 * GIB, 10 * GIB)
    above = Weighed("above", 5 * GIB, 4 * GIB)
    chosen = choose([planned, above], GIB, FLOOR)
    assert chosen is not None
    assert chosen[0] == "above"
    assert str(chosen[1]) == (
        "Only 1.0 GiB of this node's memory were left, 4.0 are to stay free; "
        "it took 5.0 GiB and was ended."
    )


def test_without_plans_the_largest_goes() -> None:
    chosen = choose([Weighed("a", GIB, None), Weighed("b", 3 * GIB, None)], 0, FLOOR)
    assert chosen is not None
    assert chosen[0] == "b"


def test_a_runaway_is_ended_before_memory_is_short() -> None:
    chosen = choose([Weighed("a", 5 * GIB, 2 * GIB), Weighed("b", GIB, GIB)], 500 * GIB, FLOOR)
    assert chosen is not None
    assert chosen[0] == "a"
    assert str(chosen[1]) == ("It took 5.0 GiB of memory, planned were 2.0; ended as a runaway.")
    assert choose([Weighed("a", 4 * GIB, 2 * GIB)], 500 * GIB, FLOOR) is None


sizes = st.integers(0, 64 * GIB)


@given(st.lists(st.tuples(sizes, st.none() | sizes), min_size=1, max_size=6), sizes)
def test_with_memory_short_somebody_goes_and_nobody_with_less_excess(
    numbers: list[tuple[int, int | None]], available: int
) -> None:
    processes = [Weighed(str(n), *pair) for n, pair in enumerate(numbers)]
    chosen = choose(processes, available, 2 * available + 2)
    assert chosen is not None
    (victim,) = [process for process in processes if process.key == chosen[0]]
    assert victim.runs_away or victim.excess == max(p.excess for p in processes)


async def test_the_victim_is_started_again_with_the_reason_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.watch.available_bytes", lambda: 1 << 20)
    bench.ask(spec_of(SERVE, memory_floor=GIB))
    state = await bench.ended()
    assert state.exit_code == -9
    assert str(state.reason).startswith("Only 0.0 GiB of this node's memory were left")
