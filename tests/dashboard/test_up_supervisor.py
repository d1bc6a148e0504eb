import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.up.child import Child, Program, python_program
from dashboard.up.supervisor import Supervisor, shorten_log

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('up', flush=True); time.sleep(600)"
)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(said: list[str]) -> Iterator[Supervisor]:
    it = Supervisor(said.append)
    yield it
    it.hurry = True
    it.stop(tuple(it.children))


def program(folder: Path, code: str, name: str = "child", stop_seconds: float = 5.0) -> Program:
    log = folder / f"{name}.log"
    return python_program(name, ["-c", code], log, folder, {}, stop_seconds)


def until_it_spoke(child: Child) -> None:
    deadline = time.monotonic() + 20
    while child.last_words() != "up":
        assert time.monotonic() < deadline, "the child never spoke"


def check_until(supervisor: Supervisor, said: list[str], lines: int) -> None:
    deadline = time.monotonic() + 20
    while len(said) < lines:
        supervisor.check()
        assert time.monotonic() < deadline, said


def test_a_child_that_dies_is_named_with_its_last_words_and_started_again(
    tmp_path: Path, supervisor: Supervisor, said: list[str]
) -> None:
    supervisor.start(program(tmp_path, "import sys; sys.exit('no such table')"))
    check_until(supervisor, said, 2)
    assert said == [
        "child ended with code 1: no such table (starting it again in 0.1 s)",
        "child ended with code 1: no such table (starting it again in 0.2 s)",
    ]


def test_a_killed_child_is_named_by_its_signal(
    tmp_path: Path, supervisor: Supervisor, said: list[str]
) -> None:
    child = supervisor.start(program(tmp_path, SLEEPER))
    until_it_spoke(child)
    assert child.process is not None
    child.process.send_signal(signal.SIGKILL)
    check_until(supervisor, said, 1)
    assert said[0].startswith("child was killed by SIGKILL: up")


def test_stopping_ends_every_child_and_announces_nothing(
    tmp_path: Path, supervisor: Supervisor, said: list[str]
) -> None:
    children = [supervisor.start(program(tmp_path, SLEEPER, name)) for name in ("one", "two")]
    for child in children:
        until_it_spoke(child)
    supervisor.stop(("one",), ("two",))
    assert not any(child.running for child in children)
    assert said == []


def test_a_child_that_ignores_the_stop_is_killed_and_named(
    tmp_path: Path, supervisor: Supervisor, said: list[str]
) -> None:
    child = supervisor.start(program(tmp_path, STUBBORN, stop_seconds=0.3))
    until_it_spoke(child)
    supervisor.stop(("child",))
    assert not child.running
    assert said == ["child did not end within 0.3 s and is killed"]


def test_a_long_log_keeps_one_old_part(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text("x" * 100)
    shorten_log(log, most=50)
    assert log.read_text() == ""
    assert (tmp_path / "web.log.1").read_text() == "x" * 100


def test_output_goes_to_the_log_not_to_the_screen(
    tmp_path: Path, supervisor: Supervisor, capfd: pytest.CaptureFixture[str]
) -> None:
    until_it_spoke(supervisor.start(program(tmp_path, SLEEPER)))
    assert capfd.readouterr() == ("", "")
