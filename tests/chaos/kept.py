"""Agents as an office runs them: each in its box, started again at once whenever it ends."""

import os
import signal
import subprocess
import threading
from pathlib import Path

from tests.chaos.leash import on_leash
from tests.engine.boxes import Box

STOP_SECONDS = 30.0


class KeptAgent:
    """Its own thread forks and waits, for the agent dies with the thread that forked it."""

    def __init__(self, box: Box, arguments: list[str], token: str, log: Path) -> None:
        self.box = box
        self.starts = 0
        self._arguments = ["-m", "engine.agent", *arguments]
        self._environment = _environment(token, log.with_suffix(""))
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"keeper of {box.name}")

    def start(self) -> None:
        self._thread.start()

    @property
    def pid(self) -> int:
        """0 while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else 0

    def stop(self) -> None:
        """Ask it to end, and its engines with it; killed when it takes too long."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
        self._thread.join(STOP_SECONDS)
        if process is not None and process.poll() is None:
            process.kill()
        self._thread.join(5)

    def _keep(self) -> None:
        while not self._stopping.is_set():
            self.starts += 1
            with self._log.open("ab") as output:
                self._process = self.box.run(
                    self._arguments,
                    self._environment,
                    output,
                    leash=on_leash(),
                )
            self._process.wait()
            self._stopping.wait(0.1)  # A program that cannot start is not to take a core.


def _environment(token: str, private: Path) -> dict[str, str]:
    """Two agents share this machine's files, so each gets its own folder for what it keeps."""
    private.mkdir(exist_ok=True)
    ours = ("TANDEM_", "DATABASE_URL", "REDIS_URL", "DJANGO_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return inherited | {
        "PYTHONUNBUFFERED": "1",
        "TANDEM_NODE_TOKEN": token,
        "XDG_RUNTIME_DIR": str(private),
        "TMPDIR": str(private),
    }
