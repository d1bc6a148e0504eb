"""Postgres and Valkey for the other processes: embedded ones, or those the environment names."""

import json
import os
import signal
from pathlib import Path

from dashboard import env
from dashboard.embedded import EmbeddedPostgres, EmbeddedValkey
from dashboard.up.child import Program
from dashboard.up.options import Options, write_private
from dashboard.up.supervisor import Supervisor

NAMES = ("DATABASE_URL", "REDIS_URL")
BASE = Path(__file__).resolve().parents[2]


class Servers:
    """Begin them early, use the time they need, and wait for them before the first query."""

    def __init__(self, options: Options, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._note = note_path(options.state)
        self.postgres = None if options.database_url else EmbeddedPostgres(options.state)
        self.valkey = None if options.redis_url else EmbeddedValkey(options.state)
        self.urls = {
            "DATABASE_URL": self.postgres.url() if self.postgres else options.database_url,
            "REDIS_URL": self.valkey.url if self.valkey else options.redis_url,
        }

    @property
    def label(self) -> str:
        embedded = [
            name for name, it in (("Postgres", self.postgres), ("Valkey", self.valkey)) if it
        ]
        return " and ".join(embedded) or "Your Postgres and Valkey"

    def begin(self) -> None:
        if self.postgres:
            self._supervisor.start(
                Program("Postgres", self.postgres.log, self.postgres.begin, signal.SIGINT, 20)
            )
        if self.valkey:
            self._supervisor.start(Program("Valkey", self.valkey.log, self.valkey.begin))
        os.environ.update(self.urls)

    def wait(self) -> None:
        """Raises EmbeddedError with the last log lines when one does not come up."""
        if self.postgres:
            self.postgres.wait_ready()
        if self.valkey:
            self.valkey.wait_ready()
        embedded = {"DATABASE_URL": self.postgres, "REDIS_URL": self.valkey}
        shared = {name: self.urls[name] for name in NAMES if embedded[name]}
        write_private(self._note, json.dumps(shared))

    def forget(self) -> None:
        self._note.unlink(missing_ok=True)


def note_path(state: Path) -> Path:
    return state / "secrets" / "servers.json"


def use_running_servers() -> None:
    """A command typed beside a running `up` uses the same servers, unless told of others."""
    note = note_path(env.state_dir(BASE))
    try:
        urls = json.loads(note.read_text())
    except (OSError, ValueError):
        return
    for name in NAMES:
        if name in urls:
            os.environ.setdefault(name, urls[name])
