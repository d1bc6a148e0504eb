"""`manage.py up` from the first check to the last stop."""

import argparse
import contextlib
import http.client
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from dashboard.embedded import EmbeddedError
from dashboard.translations import compile_stale
from dashboard.up import fleet, panel
from dashboard.up.errors import StopRequested, UpError
from dashboard.up.lock import StateLock
from dashboard.up.options import Options, check_port, prepare_state
from dashboard.up.servers import Servers
from dashboard.up.supervisor import POLL_SECONDS, Supervisor
from dashboard.up.terminal import Terminal

BASE = Path(__file__).resolve().parents[2]
WEB_SECONDS = 90.0
NODES_SECONDS = 60.0
DEPLOY_SECONDS = 600.0
LOOK_SECONDS = 0.3
"""Between two looks into the database; the cores are wanted by what is starting."""


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 0 after an asked stop, 1 when it could not start or go on."""
    asked = _parser().parse_args(arguments)
    terminal = Terminal()
    try:
        options = Options.from_environment(BASE, asked.nodes, asked.demo)
        # No process started from here on needs it, the embedded servers included.
        os.environ.pop("TANDEM_ADMIN_PASSWORD", None)
        prepare_state(options.state)
        with StateLock(options.state):
            check_port(options.host, options.port)
            Up(options, terminal).run()
    except (UpError, EmbeddedError, ImproperlyConfigured) as error:
        terminal.line(f"Tandem cannot start: {error}")
        return 1
    except (StopRequested, KeyboardInterrupt):
        pass
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="manage.py up", description="Run all of Tandem here.")
    parser.add_argument(
        "--nodes",
        type=int,
        choices=range(len(panel.NODES) + 1),
        default=len(panel.NODES),
        help="how many of the local nodes to run; 0 leaves engines to agents elsewhere",
    )
    parser.add_argument(
        "--no-demo",
        dest="demo",
        action="store_false",
        help="do not import and deploy the bundled model on the first start",
    )
    return parser


class Up:
    def __init__(self, options: Options, terminal: Terminal) -> None:
        self.options = options
        self.terminal = terminal
        self.supervisor = Supervisor(terminal.line)
        self.servers = Servers(options, self.supervisor)
        self.new_password = ""
        self.nodes = dict(list(panel.NODES.items())[: options.nodes])

    def run(self) -> None:
        """Returns by StopRequested or an error only, with every process stopped."""
        with self._stopping_in_order():
            self._prepare()
            tokens = self._database()
            self._processes(tokens)
            self._models()
            self.terminal.line(ready_line(self.options, self.new_password))
            self._wait("", lambda: False, seconds=None)

    def _prepare(self) -> None:
        with self.terminal.stage(self.servers.label):
            self.servers.begin()
            panel.load_django(self.options.logs / "up.log")
            compile_stale(BASE / "locale")
            self.servers.wait()

    def _database(self) -> dict[str, str]:
        with self.terminal.stage("Migrations"):
            panel.migrate(self.terminal.progress)
            self.new_password = panel.ensure_admin(self.options.admin_password)
            panel.resume(self.nodes)
            return panel.node_tokens(self.nodes)

    def _processes(self, tokens: dict[str, str]) -> None:
        """The agents follow the web process: dialling before it listens would cost a backoff."""
        started = datetime.now(tz=UTC)
        with self.terminal.stage("Web, worker and agents"):
            for program in (fleet.web(self.options), fleet.worker(self.options)):
                self.supervisor.start(program)
            self._wait("The web process", self._web_answers, WEB_SECONDS)
            for node, token in tokens.items():
                address = self.nodes[node]
                self.supervisor.start(fleet.agent(self.options, node, address, token))
            self.supervisor.start(fleet.beat(self.options))
            online = partial(panel.nodes_online, self.nodes, started)
            self._wait("An agent", online, NODES_SECONDS)

    def _models(self) -> None:
        if self.options.demo and panel.catalogue_is_empty():
            with self.terminal.stage("Importing SmolLM2-135M-Instruct"):
                panel.import_and_deploy()
        for name in panel.wanted_names() if self.nodes else ():
            self._follow(name)

    def _follow(self, name: str) -> None:
        """Until the deployment is ready; one that fails is named and does not stop the rest."""
        with self.terminal.stage(f"Deploying {name}"):
            deadline = time.monotonic() + DEPLOY_SECONDS
            while (state := panel.deployment_state(name)).starting:
                self.terminal.progress(state.progress)
                self._tick(LOOK_SECONDS)
                if time.monotonic() > deadline:
                    break
        if not state.ready:
            self.terminal.line(f"{name} is not ready: {state.reason}")

    def _wait(self, what: str, done: Callable[[], bool], seconds: float | None) -> None:
        """Watch the children until `done`; raises UpError when the seconds run out."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not done():
            self._tick(POLL_SECONDS)
            if deadline is not None and time.monotonic() > deadline:
                raise UpError(
                    f"{what} was not there within {seconds:g} s; see {self.options.logs}."
                )

    def _tick(self, seconds: float) -> None:
        self.supervisor.check()
        time.sleep(seconds)

    def _web_answers(self) -> bool:
        address = urlsplit(self.options.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=2)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    @contextlib.contextmanager
    def _stopping_in_order(self) -> Iterator[None]:
        """The first signal raises StopRequested, a second one only shortens the farewell."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _request_stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, self._hurry)
            with self.terminal.stage("Stopping"):
                # Whoever would take engines that end for a fault goes before they do.
                panel_first = ("web", "beat", "worker"), tuple(self.nodes)
                self.supervisor.stop(*panel_first, ("Valkey",), ("Postgres",))
                self.servers.forget()

    def _hurry(self, number: int, frame: FrameType | None) -> None:
        self.supervisor.hurry = True


def ready_line(options: Options, made_up: str) -> str:
    password = made_up or ("as set" if options.admin_password else "unchanged")
    return f"Ready: {options.url}  user {panel.ADMIN}  password {password}"


def _request_stop(number: int, frame: FrameType | None) -> None:
    raise StopRequested
