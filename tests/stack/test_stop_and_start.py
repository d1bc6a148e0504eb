"""Starting, being killed, starting again, stopping: nothing left over, nothing in the way."""

import signal

import psutil
import pytest

from tests.stack.conftest import Stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.model]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return psutil.wait_procs(processes, timeout=0)[1]


def test_killed_then_started_then_stopped(
    own_stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    own_stack.start()
    first = own_stack.ready_seconds
    started = own_stack.processes()
    own_stack.stop(signal.SIGKILL)
    wait_for("the end of what it started", lambda: not alive(started), 20)

    own_stack.start()
    assert "smollm2" in own_stack.output
    with capsys.disabled():
        print(f"\nready after {first:.1f} s, and after kill -9 {own_stack.ready_seconds:.1f} s")
    started = own_stack.processes()
    assert own_stack.stop(signal.SIGINT) == 0
    assert alive(started) == []
    assert not (own_stack.state / "up.lock").exists()
    assert own_stack.get("/healthz")[0] == 0
