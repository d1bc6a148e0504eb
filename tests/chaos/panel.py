"""The control plane of a fleet: `manage.py up` without local nodes, and ways to look into it."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from dashboard.embedded import EmbeddedPostgres
from tests.chaos.leash import on_leash
from tests.chaos.office import Office
from tests.chaos.processes import of_state, with_words
from tests.chaos.waiting import wait_for
from tests.engine.boxes import ROOT

START_SECONDS = 120.0
STOP_SECONDS = 60.0
ROUTE = "smollm2"
_NOT_OURS = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "TANDEM_SECRET_KEY")


class Launch(NamedTuple):
    """A replica that has not ended, as the panel's database knows it."""

    launch: str
    token: str
    role: str
    status: str
    host: str
    port: int


class Panel:
    def __init__(self, office: Office, log: Path) -> None:
        self.url = f"http://{office.address}:{office.port}"
        self.key = ""
        self._office = office
        self._log = log
        self._up: subprocess.Popen[bytes] | None = None
        self._database = EmbeddedPostgres(office.state).url()

    def start(self) -> None:
        """Until it is ready for agents. Raises RuntimeError with its words when it ends before."""
        with self._log.open("wb") as output:
            self._up = subprocess.Popen(
                [*on_leash(), sys.executable, "manage.py", "up", "--nodes", "0", "--no-demo"],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        wait_for("the panel's start", self._ready_or_ended, START_SECONDS, self._words)
        if self._up.poll() is not None:
            raise RuntimeError(f"manage.py up ended: {self._words()}")

    def stop(self) -> None:
        if self._up is None or self._up.poll() is not None:
            return
        self._up.send_signal(signal.SIGINT)
        try:
            self._up.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._up.kill()
            self._up.wait(10)

    def manage(self, *arguments: str) -> str:
        """What `manage.py ARGUMENTS` prints beside the running panel."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"manage.py {arguments[0]} failed: {done.stderr.strip()[-2000:]}")
        return done.stdout.strip()

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        """From the database itself; none while it does not answer."""
        try:
            with psycopg.connect(self._database, connect_timeout=3) as connection:
                return connection.execute(question.encode()).fetchall()
        except psycopg.Error:
            return []

    def launches(self) -> list[Launch]:
        """Primary first."""
        live = "'starting', 'ready', 'recovering', 'stopping'"
        rows = self.rows(
            "SELECT launch, token, role, status, host, http_port FROM dashboard_replica "
            f"WHERE status IN ({live}) ORDER BY role DESC, id"
        )
        return [Launch(*row) for row in rows]

    def nodes_online(self) -> int:
        rows = self.rows("SELECT count(*) FROM dashboard_node WHERE status = 'online'")
        return int(rows[0][0]) if rows else 0

    def events(self, count: int = 20) -> list[str]:
        """The newest last: what the deployment's page tells of, untranslated."""
        rows = self.rows(
            f"SELECT at, message, params FROM dashboard_event ORDER BY id DESC LIMIT {count}"
        )
        return [f"{when:%H:%M:%S} {text} {words}" for when, text, words in reversed(rows)]

    def status(self) -> str:
        """Of the deployment, as programs are told; empty while nobody tells."""
        code, answer = ask(f"{self.url}/v1/models/{ROUTE}", self.key)
        return str(answer.get("status", "")) if code == 200 else ""

    def readiness(self) -> dict[str, Any]:
        """`/readyz`: what does not answer; the web process itself when that does not."""
        code, answer = ask(f"{self.url}/readyz", "")
        if code == 0:
            return {"web": "no answer"}
        return {name: part for name, part in answer.items() if not part["ok"]}

    def pid_of(self, *words: str) -> int:
        """Of the panel's process with these words in its command line; waits for it a moment."""

        return min(wait_for(f"a process with {words}", lambda: self.pids_of(*words), 20))

    def pids_of(self, *words: str) -> list[int]:
        return with_words(of_state(self._office.state), *words)

    def processes(self) -> list[int]:
        return of_state(self._office.state)

    @property
    def valkey_socket(self) -> Path:
        return self._office.state / "run" / "valkey.sock"

    @property
    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
        return inherited | {
            "TANDEM_STATE_DIR": str(self._office.state),
            "TANDEM_HOST": self._office.address,
            "TANDEM_PORT": str(self._office.port),
            "PYTHONUNBUFFERED": "1",
        }

    def _ready_or_ended(self) -> bool:
        assert self._up is not None
        return "Ready: " in self._words() or self._up.poll() is not None

    def _words(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


def ask(url: str, token: str, seconds: float = 3.0) -> tuple[int, dict[str, Any]]:
    """Status and JSON object of a GET; 0 when nobody answers, and an empty object without one."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _object(error.read())
    except (OSError, ValueError):
        return 0, {}


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
