"""Real processes: how they start, how they end, and what is said about it."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.drivers.base import Command
from engine.protocol.launch import GIVEN_UP
from tests.engine.agent_bench import Bench, agent_bench
from tests.engine.agents import DEAF, SERVE, lives, spec_of, until


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with agent_bench(tmp_path) as bench:
        yield bench


async def test_a_process_gets_its_spec_on_standard_input(bench: Bench) -> None:
    script = "import json, sys; print(json.loads(sys.stdin.readline())['served_name'], flush=True)"
    bench.ask(spec_of(script + f"; sys.exit({GIVEN_UP})"))
    state = await bench.exited()
    assert state.log_tail == ["test"]
    assert state.exit_code == GIVEN_UP
    assert str(state.reason) == "It exited with code 76: test"


async def test_a_process_inherits_nothing_of_its_keeper(bench: Bench) -> None:
    """Else whatever it leaves behind would keep the keeper's line to the agent open."""
    script = (
        "import os\nfor name in os.listdir('/proc/self/fd'):\n"
        " if os.path.exists(path := f'/proc/self/fd/{name}'): print(os.readlink(path))\n"
        f"os._exit({GIVEN_UP})"
    )
    bench.ask(spec_of(script))
    told = (await bench.exited()).log_tail
    assert len(told) >= 4
    assert not any(line.startswith("socket:") for line in told)


async def test_a_killed_process_is_reported_with_its_signal(bench: Bench) -> None:
    pid = await bench.started(spec_of(SERVE))
    assert bench.state().status == "running"
    os.kill(pid, signal.SIGKILL)
    state = await bench.ended()
    assert (state.exit_code, state.asked) == (-9, False)
    assert str(state.reason) == "It was killed by signal 9 (SIGKILL)."
    assert state.status != "exited"
    bench.ask()
    await until(lambda: not bench.supervisor.processes, "it to be forgotten")


async def test_a_python_error_is_the_reason(bench: Bench) -> None:
    bench.ask(spec_of("raise FileNotFoundError('no model at /models/x.gguf')"))
    state = await bench.ended()
    assert state.exit_code == 1
    assert str(state.reason).endswith("FileNotFoundError: no model at /models/x.gguf")


async def test_an_unknown_driver_is_an_exited_process_with_the_reason(bench: Bench) -> None:
    bench.ask(spec_of(SERVE, driver="warp"))
    state = await bench.exited()
    assert (state.pid, state.exit_code) == (None, None)
    assert "no engine driver 'warp'; this node has script" in str(state.reason)


async def test_stop_asks_first(bench: Bench) -> None:
    script = (
        "import signal, sys, time\n"
        "def end(*_):\n    print('goodbye', flush=True)\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\nprint('serving', flush=True)\ntime.sleep(600)"
    )
    await bench.started(spec_of(script))
    process = bench.supervisor.processes["l1:rank0"]
    bench.ask()
    await until(lambda: not bench.supervisor.processes, "the stop")
    assert process.state().log_tail == ["serving", "goodbye"]
    assert str(process.state().reason) == "Stopped as asked (exit code 0)."
    assert process.state().asked


async def test_a_process_that_will_not_stop_is_killed(bench: Bench) -> None:
    bench.driver.stop_seconds = 0.2
    pid = await bench.started(spec_of(DEAF), "deaf")
    process = bench.supervisor.processes["l1:rank0"]
    bench.ask()
    await until(lambda: not bench.supervisor.processes, "the kill")
    assert not lives(pid)
    assert str(process.state().reason) == "Stopped as asked: killed by signal 9 (SIGKILL)."


async def test_what_a_process_leaves_behind_goes_with_it(bench: Bench) -> None:
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"print('child', child.pid, flush=True)\nsys.stdin.readline(); sys.exit({GIVEN_UP})"
    )
    bench.ask(spec_of(script))
    state = await bench.exited()
    grandchild = int(state.log_tail[0].split()[1])
    await until(lambda: not lives(grandchild), "the grandchild's end")


async def test_a_new_launch_starts_after_the_old_one_has_gone(bench: Bench) -> None:
    old = await bench.started(spec_of(SERVE))
    new = await bench.started(spec_of(SERVE, launch="l2"))
    assert not lives(old)
    assert lives(new)
    assert bench.supervisor.processes.keys() == {"l2:rank0"}


async def test_the_launch_token_is_not_in_logs_or_command_line(bench: Bench) -> None:
    script = "import sys; print(sys.stdin.readline(), flush=True); sys.stdin.read()"
    bench.ask(spec_of(script))
    await until(lambda: "l1:rank0" in bench.supervisor.processes, "a start")
    await until(lambda: bool(bench.log()), "its log")
    pid = bench.state().pid
    with open(f"/proc/{pid}/cmdline") as command, open(f"/proc/{pid}/environ") as environment:
        assert "launch-token-value" not in command.read() + environment.read()
    assert "launch-token-value" not in "".join(bench.log())


async def test_secrets_of_the_agent_do_not_reach_engines(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_NODE_TOKEN", "secret")
    monkeypatch.setenv("DATABASE_URL", "secret")
    bench.ask(
        spec_of(
            f"import os; print('secret' in os.environ.values(), flush=True); os._exit({GIVEN_UP})"
        )
    )
    assert (await bench.exited()).log_tail == ["False"]


async def test_a_flood_of_lines_is_bounded_and_says_so(bench: Bench) -> None:
    bench.ask(spec_of("for n in range(1000): print('line', n)\n" + f"raise SystemExit({GIVEN_UP})"))
    state = await bench.exited()
    assert state.log_tail == [f"line {n}" for n in range(800, 1000)]
    (batch,) = bench.supervisor.take_logs()
    assert batch.lines == ["(900 lines left out)", *(f"line {n}" for n in range(900, 1000))]
    assert bench.supervisor.take_logs() == []


async def test_stop_all_ends_everything(bench: Bench) -> None:
    pid = await bench.started(spec_of(SERVE))
    await bench.supervisor.stop_all()
    assert not lives(pid)


async def test_the_kernel_takes_engines_before_the_rest_of_the_host(bench: Bench) -> None:
    pid = await bench.started(spec_of(SERVE))
    assert int(Path(f"/proc/{pid}/oom_score_adj").read_text()) == 500


async def test_a_command_that_is_not_there_says_so(bench: Bench) -> None:
    bench.driver.command = lambda spec: Command(argv=["/nowhere/engine"])  # type: ignore[method-assign]  # this bench alone
    bench.ask(spec_of(SERVE))
    state = await bench.ended()
    assert state.exit_code == 127
    assert str(state.reason).endswith("Cannot run /nowhere/engine: No such file or directory.")


async def test_a_keeper_that_cannot_be_started_is_a_failure_with_the_systems_words(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agent.child.sys.executable", "/nowhere/python")
    bench.ask(spec_of(SERVE))
    state = await bench.ended()
    assert (state.pid, state.exit_code) == (None, None)
    assert str(state.reason) == "It could not be started: No such file or directory"
    assert state.status != "exited", "it is tried again"
