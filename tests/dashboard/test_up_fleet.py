"""Every process is started with what it needs and no more."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dashboard.up import fleet
from dashboard.up.options import Options


class Started:
    """What the last program would be started with."""

    def __call__(
        self,
        name: str,
        arguments: list[str],
        log: Path,
        directory: Path,
        environment: Mapping[str, str],
        **more: Any,
    ) -> None:
        self.arguments, self.environment = arguments, environment


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    it = Started()
    monkeypatch.setattr(fleet, "python_program", it)
    for name in ("TANDEM_ADMIN_PASSWORD", *fleet.SECRETS_FOR_THE_PANEL):
        monkeypatch.setenv(name, f"postgresql://u:s3cret@h/{name}")
    monkeypatch.setenv("TANDEM_VAULT_KEYS", "s3cret" + "A" * 37 + "=")
    monkeypatch.setenv("TANDEM_LOG_LEVEL", "warning")
    return it


@pytest.mark.parametrize("program", [fleet.web, fleet.worker, fleet.beat])
def test_the_panels_processes_share_one_log_level(program: Any, started: Started) -> None:
    program(Options.from_environment(Path("/nowhere")))
    (level,) = [it for it in started.arguments if it.startswith(("--log-level=", "--loglevel="))]
    assert level.partition("=")[2].lower() == "warning"
    assert "s3cret" not in " ".join(started.arguments)
    assert "TANDEM_ADMIN_PASSWORD" not in started.environment


def test_an_agent_knows_its_token_and_no_other_secret(started: Started) -> None:
    options = Options.from_environment(Path("/nowhere"))
    fleet.agent(options, "node-a", "127.0.0.1", "tdn_mine")
    assert started.environment["TANDEM_NODE_TOKEN"] == "tdn_mine"
    assert "tdn_mine" not in " ".join(started.arguments)
    assert [name for name, value in started.environment.items() if "s3cret" in value] == []
