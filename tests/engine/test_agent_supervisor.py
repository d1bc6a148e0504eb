"""Real processes: how they start, how they end, and what is said about it."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator

import pytest

from engine.agent.supervisor import Supervisor
from engine.protocol.agent import ProcessState
from engine.protocol.launch import ProcessSpec
from tests.engine.agents import DEAF, SERVE, ScriptDriver, lives, spec_of, until


class Bench:
    """A running supervisor."""

    running: asyncio.Task[None]

    def __init__(self) -> None:
        self.driver = ScriptDriver()
        self.changes = 0
        self.supervisor = Supervisor(self._count, {"script": self.driver})

    def _count(self) -> None:
        self.changes += 1

    def ask(self, *specs: ProcessSpec) -> None:
        self.supervisor.set_desired(self.supervisor.generation + 1, specs)

    def state(self, key: str = "l1:rank0") -> ProcessState:
        return self.supervisor.processes[key].state()

    def log(self, key: str = "l1:rank0") -> list[str]:
        return self.supervisor.processes[key].log.tail

    async def started(self, spec: ProcessSpec, word: str = "serving") -> int:
        """Ask for it, wait until it has printed `word`, and give its pid."""
        self.ask(spec)
        await until(lambda: spec.key in self.supervisor.processes, "a start")
        await until(lambda: word in self.log(spec.key), word)
        pid = self.state(spec.key).pid
        assert pid is not None
        return pid

    async def exited(self, key: str = "l1:rank0") -> ProcessState:
        processes = self.supervisor.processes
        await until(lambda: key in processes and processes[key].exited.is_set(), "an exit")
        return self.state(key)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    bench.running = asyncio.create_task(bench.supervisor.run())
    yield bench
    bench.running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await bench.running


async def test_a_process_gets_its_spec_on_standard_input(bench: Bench) -> None:
    script = "import json, sys; print(json.loads(sys.stdin.readline())['served_name'], flush=True)"
    bench.ask(spec_of(script + "; sys.exit(3)"))
    state = await bench.exited()
    assert state.log_tail == ["test"]
    assert state.exit_code == 3
    assert str(state.reason) == "It exited with code 3: test"


async def test_a_killed_process_is_reported_with_its_signal(bench: Bench) -> None:
    pid = await bench.started(spec_of(SERVE))
    assert bench.state().status == "running"
    os.kill(pid, signal.SIGKILL)
    state = await bench.exited()
    assert (state.exit_code, state.asked) == (-9, False)
    assert str(state.reason) == "It was killed by signal 9 (SIGKILL)."
    assert bench.supervisor.processes, "it stays in the report while it is asked for"
    bench.ask()
    await until(lambda: not bench.supervisor.processes, "it to be forgotten")


async def test_a_python_error_is_the_reason(bench: Bench) -> None:
    bench.ask(spec_of("raise FileNotFoundError('no model at /models/x.gguf')"))
    state = await bench.exited()
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
        "print('child', child.pid, flush=True)\nsys.stdin.readline(); sys.exit(1)"
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
    bench.ask(spec_of("import os; print('secret' in os.environ.values(), flush=True)"))
    assert (await bench.exited()).log_tail == ["False"]


async def test_a_flood_of_lines_is_bounded_and_says_so(bench: Bench) -> None:
    bench.ask(spec_of("for n in range(1000): print('line', n)"))
    state = await bench.exited()
    assert state.log_tail == [f"line {n}" for n in range(800, 1000)]
    (batch,) = bench.supervisor.take_logs()
    assert batch.lines == ["(900 lines left out)", *(f"line {n}" for n in range(900, 1000))]
    assert bench.supervisor.take_logs() == []


async def test_stop_all_ends_everything(bench: Bench) -> None:
    pid = await bench.started(spec_of(SERVE))
    await bench.supervisor.stop_all()
    assert not lives(pid)


async def test_when_the_supervisor_fails_nothing_is_left(bench: Bench) -> None:
    deaf = await bench.started(spec_of(DEAF), "deaf")
    bench.running.cancel()
    await asyncio.wait({bench.running})
    assert not lives(deaf)
