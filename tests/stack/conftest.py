"""The whole product for tests: one `manage.py up` for the run, and ways to look into it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

PROJECT = Path(__file__).resolve().parents[2]
PASSWORD = "a password only tests use"
START_SECONDS = 240.0
_OURS = ("DATABASE_URL", "REDIS_URL", "PGOPTIONS", "DJANGO_SETTINGS_MODULE", "TANDEM_SECRET_KEY")


def wait_for(what: str, done: Callable[[], Any], seconds: float = 60.0, pause: float = 0.05) -> Any:
    """The first true answer of `done`; fails naming `what` when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := done()):
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not happen within {seconds:g} s")
        time.sleep(pause)
    return answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Stack:
    """One `manage.py up` with a state directory and ports of its own."""

    def __init__(self, state: Path, port: int | None = None, password: str = PASSWORD) -> None:
        self.state = state
        self.port = port or free_port()
        self.password = password
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.ready_seconds = 0.0
        self.extra: dict[str, str] = {}
        self.output_file = state.with_name(f"{state.name}.out")

    @property
    def environment(self) -> dict[str, str]:
        """The test run's own servers must not leak into this one."""
        inherited = {name: value for name, value in os.environ.items() if name not in _OURS}
        first = 20000 + self.port % 120 * 100
        return inherited | {
            "TANDEM_STATE_DIR": str(self.state),
            "TANDEM_PORT": str(self.port),
            "TANDEM_ADMIN_PASSWORD": self.password,
            "TANDEM_ENGINE_PORTS": f"{first}-{first + 99}",
            **self.extra,
        }

    @property
    def output(self) -> str:
        return self.output_file.read_text(errors="replace") if self.output_file.exists() else ""

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> "Stack":
        """Until the line `Ready: …`; raises when `up` ends before."""
        started = time.monotonic()
        self.output_file.write_text("")
        self.launch()
        wait_for("Ready", self._ready_or_ended, START_SECONDS)
        if "Ready: " not in self.output:
            pytest.fail(f"manage.py up ended:\n{self.output}")
        self.ready_seconds = time.monotonic() - started
        return self

    def launch(self) -> subprocess.Popen[bytes]:
        with self.output_file.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=PROJECT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return self.process

    def stop(self, number: signal.Signals = signal.SIGINT, seconds: float = 60.0) -> int:
        """The exit code; killed outright when it takes longer."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
            pytest.fail(f"manage.py up did not end within {seconds:g} s:\n{self.output}")

    def manage(self, *arguments: str) -> str:
        """What `manage.py ARGUMENTS` prints, beside the running `up`."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def api_key(self, name: str = "tests") -> str:
        printed = self.manage("api_key", "--user", "admin", "--name", name)
        found = re.search(r"sk-tdm-\S+", printed)
        assert found, printed
        return found.group()

    def rows(self, query: str, *values: object) -> list[Any]:
        """Out of the product's own database: asking often takes nothing from what is tested."""
        servers = json.loads((self.state / "secrets" / "servers.json").read_text())
        with psycopg.connect(servers["DATABASE_URL"], autocommit=True) as database:
            return database.execute(query.encode(), values).fetchall()

    def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON of a GET without signing in; status 0 when nobody answers."""
        try:
            with urllib.request.urlopen(self.base_url + path, timeout=15) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except OSError:
            return 0, None

    def processes(self) -> list[psutil.Process]:
        """Everything that `up` started, engines included."""
        return psutil.Process(self.pid).children(recursive=True)

    def process_of(self, *words: str) -> psutil.Process:
        """The one whose command line holds all the words; waits for it a moment."""

        def find() -> list[psutil.Process]:
            return [it for it in self.processes() if set(words) <= set(self.words_of(it))]

        found: list[psutil.Process] = wait_for(f"a process with {words}", find, 15)
        return found[0]

    def leftovers(self) -> list[psutil.Process]:
        """Processes of this stack that run without an `up`."""
        return [
            it for it in psutil.process_iter() if str(self.state) in " ".join(self.words_of(it))
        ]

    @staticmethod
    def words_of(process: psutil.Process) -> list[str]:
        try:
            return process.cmdline()
        except psutil.Error:
            return []

    def _ready_or_ended(self) -> bool:
        return "Ready: " in self.output or (
            self.process is not None and self.process.poll() is not None
        )


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A ready product shared by the run: `smollm2` answers over node-a and node-b."""
    it = Stack(tmp_path_factory.mktemp("stack") / "state")
    try:
        it.start()
        yield it
    finally:
        if it.process is not None:
            it.stop()


@pytest.fixture
def own_stack(tmp_path: Path) -> Iterator[Stack]:
    """One that a test may start, kill and start again."""
    it = Stack(tmp_path / "state")
    try:
        yield it
    finally:
        if it.process is not None:
            it.stop()
