"""Where an agent keeps what must outlive it, and what belongs to every process it starts."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.agent.environment import EngineEnvironment
from engine.drivers.base import Driver
from engine.errors import ConfigError

STATE_VARIABLE = "TANDEM_STATE_DIR"
LOCK = "agent.lock"
KEEPERS = "*.keeper"


@dataclass(frozen=True)
class Home:
    """`changed` is called on every change worth reporting."""

    folder: Path
    drivers: Mapping[str, Driver]
    changed: Callable[[], None]
    environment: EngineEnvironment = field(default_factory=EngineEnvironment)


def state_folder(asked: str | None, token: str) -> Path:
    """Of the agent with this token; several on one machine do not get into each other's way."""
    if asked:
        return Path(asked).absolute()
    base = os.environ.get(STATE_VARIABLE)
    parent = Path(base) / "agents" if base else Path.home() / ".local/state/tandem-agent"
    return parent / hashlib.sha256(token.encode()).hexdigest()[:16]


class HomeLock:
    """One agent for one folder: made private, and locked until this process ends, however it does.

    Raises ConfigError when another agent has it, OSError when it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        self._descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise ConfigError(
                f"Another agent works with the state folder {folder}. Stop it, or give this one "
                "another folder with --state."
            ) from None

    def release(self) -> None:
        os.close(self._descriptor)
