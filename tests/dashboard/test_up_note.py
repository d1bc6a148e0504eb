from pathlib import Path

import pytest

from dashboard.up.note import leave_note, use_running_servers
from dashboard.up.options import Options


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secrets").mkdir()
    monkeypatch.setenv("TANDEM_STATE_DIR", str(tmp_path))
    for name in ("TANDEM_HOST", "TANDEM_PORT"):
        # Set first, so that what the note puts there is taken back after the test.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return tmp_path


def test_a_command_reaches_the_panel_that_runs_here_wherever_it_listens(state: Path) -> None:
    leave_note(state, {"TANDEM_HOST": "0.0.0.0", "TANDEM_PORT": "8001"})
    use_running_servers()
    assert Options.from_environment(state).url == "http://127.0.0.1:8001"


def test_what_the_environment_says_goes_before_the_note(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_PORT", "8002")
    leave_note(state, {"TANDEM_HOST": "127.0.0.1", "TANDEM_PORT": "8001"})
    use_running_servers()
    assert Options.from_environment(state).port == 8002
