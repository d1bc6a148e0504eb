"""A start that cannot work is one clear line and leaves the running product alone."""

import re
from pathlib import Path

import pytest

from tests.stack.conftest import Stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.model]


def refusal(stack: Stack) -> str:
    process = stack.launch()
    assert process.wait(60) == 1
    lines = stack.output.splitlines()
    assert len(lines) == 1, stack.output
    return lines[0]


def test_a_state_directory_in_use(stack: Stack) -> None:
    other = Stack(stack.state)
    other.output_file = stack.state.with_name("refused.out")
    assert f"already in use by pid {stack.pid}." in refusal(other)
    assert stack.get("/healthz")[0] == 200


def test_a_taken_port(stack: Stack, tmp_path: Path) -> None:
    line = refusal(Stack(tmp_path / "state", port=stack.port))
    assert re.search(rf"Port {stack.port} .* taken .* TANDEM_PORT", line)
    assert stack.get("/healthz")[0] == 200


def test_a_malformed_setting(tmp_path: Path) -> None:
    other = Stack(tmp_path / "state")
    other.extra = {"TANDEM_ENGINE_PORTS": "many"}
    assert "TANDEM_ENGINE_PORTS must look like" in refusal(other)
    wait_for("its servers' end", lambda: not other.leftovers())
