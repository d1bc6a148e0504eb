"""How a command typed beside a running `up` finds the embedded servers and the web process."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from dashboard import env

BASE = Path(__file__).resolve().parents[2]


def note_path(state: Path) -> Path:
    return state / "secrets" / "servers.json"


def leave_note(state: Path, variables: Mapping[str, str]) -> None:
    write_private(note_path(state), json.dumps(variables))


def use_running_servers() -> None:
    """Take what is noted, unless the environment says otherwise."""
    try:
        variables = json.loads(note_path(env.state_dir(BASE)).read_text())
    except (OSError, ValueError):
        return
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def write_private(path: Path, text: str) -> None:
    """Written beside and moved into place: readers see all of it or none."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    beside.replace(path)
