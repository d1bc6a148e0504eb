"""Every agent has a private folder of its own, and keeps others out of it."""

import stat
from pathlib import Path

import pytest

from engine.agent.home import HomeLock, state_folder
from engine.errors import ConfigError


def test_a_folder_that_was_asked_for_is_taken(tmp_path: Path) -> None:
    assert state_folder(str(tmp_path / "mine"), "token") == tmp_path / "mine"


def test_agents_with_different_tokens_do_not_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_STATE_DIR", str(tmp_path))
    first, second = state_folder(None, "one-token"), state_folder(None, "another-token")
    assert first != second
    assert first.parent == tmp_path / "agents"
    assert "one-token" not in str(first)
    monkeypatch.delenv("TANDEM_STATE_DIR")
    assert ".local/state/tandem-agent" in str(state_folder(None, "one-token"))


def test_the_folder_is_private_and_has_one_agent(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    lock = HomeLock(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with pytest.raises(ConfigError, match="Another agent works with the state folder"):
        HomeLock(folder)
    lock.release()
    HomeLock(folder).release()
