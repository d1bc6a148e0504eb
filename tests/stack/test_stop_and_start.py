"""Starting, being killed, starting again, stopping: nothing left over, nothing in the way."""

import signal

import psutil
import pytest

from tests.stack.conftest import Stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.model]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Without those that have ended and that nobody has asked about: a container's first process
    may never do."""
    return [it for it in psutil.wait_procs(processes, timeout=0)[1] if runs(it)]


def runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_killed_then_started_then_stopped(
    own_stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    own_stack.start()
    first = own_stack.ready_seconds
    left = own_stack.processes()
    own_stack.stop(signal.SIGKILL)

    own_stack.start()
    wait_for("the end of what the first one started", lambda: not alive(left), 60)
    assert "smollm2" in own_stack.output
    with capsys.disabled():
        print(f"\nready after {first:.1f} s, and after kill -9 {own_stack.ready_seconds:.1f} s")
    started = own_stack.processes()
    assert own_stack.stop(signal.SIGINT) == 0
    assert alive(started) == []
    assert not (own_stack.state / "up.lock").exists()
    assert own_stack.get("/healthz")[0] == 0
