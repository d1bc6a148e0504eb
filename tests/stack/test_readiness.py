"""`/readyz` tells the truth within seconds, and a child that dies comes back, named."""

import signal

import pytest

from tests.stack.conftest import Stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.model]


def test_everything_answers(stack: Stack) -> None:
    status, parts = stack.get("/readyz")
    assert status == 200, parts
    assert {name: part["ok"] for name, part in parts.items()} == {
        "database": True,
        "broker": True,
        "worker": True,
    }


def test_the_start_ends_with_one_line_that_says_where_and_who(stack: Stack) -> None:
    assert stack.output.splitlines()[-1].startswith(
        f"Ready: {stack.base_url}  user admin  password as set"
    )
    assert stack.password not in stack.output


def test_a_frozen_worker_is_not_ready(stack: Stack) -> None:
    worker = stack.process_of("celery", "worker")
    worker.send_signal(signal.SIGSTOP)
    try:
        wait_for("not ready", lambda: stack.get("/readyz")[0] == 503, 20)
        _, parts = stack.get("/readyz")
        assert parts["database"]["ok"]
        assert not parts["worker"]["ok"]
    finally:
        worker.send_signal(signal.SIGCONT)
    wait_for("ready again", lambda: stack.get("/readyz")[0] == 200, 20)


def test_a_killed_worker_is_named_and_started_again(stack: Stack) -> None:
    worker = stack.process_of("celery", "worker")
    worker.kill()
    wait_for("its name", lambda: "worker was killed by SIGKILL" in stack.output, 20)
    wait_for("another worker", lambda: stack.process_of("celery", "worker") != worker, 20)
    wait_for("ready again", lambda: stack.get("/readyz")[0] == 200, 30)


def test_a_killed_broker_is_named_and_everything_finds_it_again(stack: Stack) -> None:
    valkey = next(it for it in stack.processes() if "valkey" in it.name())
    valkey.kill()
    wait_for("its name", lambda: "Valkey was killed by SIGKILL" in stack.output, 20)
    wait_for("ready again", lambda: stack.get("/readyz")[0] == 200, 60)


def test_secrets_are_in_no_command_line_and_no_log(stack: Stack) -> None:
    words = [word for process in stack.processes() for word in stack.words_of(process)]
    assert not any("tdn_" in word or stack.password in word for word in words)
    logs = [path.read_text(errors="replace") for path in (stack.state / "log").iterdir()]
    assert not any("tdn_" in log or stack.password in log for log in logs)
