"""The last line of a start says where to go, who signs in, and with what."""

from pathlib import Path

import pytest

from dashboard.up.main import ready_line
from dashboard.up.options import Options


@pytest.mark.parametrize(
    ("wanted", "made_up", "password"),
    [("", "xyzzy", "xyzzy"), ("", "", "unchanged"), ("opensesame", "", "as set")],
)
def test_a_password_is_shown_only_when_it_was_made_up(
    wanted: str, made_up: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_PORT", "8123")
    monkeypatch.setenv("TANDEM_ADMIN_PASSWORD", wanted)
    line = ready_line(Options.from_environment(Path("/nowhere")), made_up)
    assert line == f"Ready: http://127.0.0.1:8123  user admin  password {password}"
