"""Postgres and Valkey for the other processes: embedded ones, or those the environment names."""

import os
import signal

import psycopg
import redis

from dashboard.embedded import EmbeddedPostgres, EmbeddedValkey
from dashboard.up.child import Program
from dashboard.up.errors import UpError
from dashboard.up.note import leave_note, note_path
from dashboard.up.options import Options
from dashboard.up.supervisor import Supervisor


class Servers:
    """Begin them early, use the time they need, and wait for them before the first query."""

    def __init__(self, options: Options, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._state = options.state
        self._web = {"TANDEM_HOST": options.host, "TANDEM_PORT": str(options.port)}
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
        """Raises EmbeddedError or UpError, saying why, when one does not answer."""
        if self.postgres:
            self.postgres.wait_ready()
        else:
            _ask_postgres(self.urls["DATABASE_URL"])
        if self.valkey:
            self.valkey.wait_ready()
        else:
            _ask_valkey(self.urls["REDIS_URL"])
        embedded = {"DATABASE_URL": self.postgres, "REDIS_URL": self.valkey}
        ours = {name: self.urls[name] for name, it in embedded.items() if it}
        leave_note(self._state, ours | self._web)

    def forget(self) -> None:
        note_path(self._state).unlink(missing_ok=True)


def _ask_postgres(url: str) -> None:
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as error:
        first = str(error).strip().splitlines()[0]
        raise UpError(f"The database that DATABASE_URL names does not answer: {first}") from error


def _ask_valkey(url: str) -> None:
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=10, socket_timeout=10) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise UpError(f"The broker that REDIS_URL names does not answer: {error}") from error
