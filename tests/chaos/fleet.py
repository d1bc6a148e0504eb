"""The whole product over two boxes: a panel, an agent in each box, one deployment across both."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.chaos.kept import KeptAgent
from tests.chaos.office import Office, office
from tests.chaos.panel import ROUTE, Launch, Panel, ask
from tests.chaos.processes import listener, with_words
from tests.chaos.waiting import wait_for

DEPLOY_SECONDS = 180.0
LAST_SECONDS = 5.0
FALLBACKS = ("none", "resident", "cold")
NODES = ("box-a", "box-b")


class Fleet:
    def __init__(self, place: Office, folder: Path, fallback: str) -> None:
        self.office = place
        self.folder = folder
        self.fallback = fallback
        self.panel = Panel(place, folder / "up.log")
        self.agents: list[KeptAgent] = []
        self.left: list[int] = []
        """Processes that were still there after it had stopped."""

    def start(self) -> None:
        """Until the deployment answers over both boxes. Raises TimeoutError, saying why not."""
        self.panel.start()
        addresses = dict(zip(NODES, self.office.managed, strict=True))
        tokens = json.loads(self._furnish(f"nodes({addresses!r})").splitlines()[-1])
        for name, box, managed in zip(NODES, self.office.boxes, self.office.managed, strict=True):
            arguments = [f"--server={self.panel.url}", f"--address={managed}"]
            arguments += [f"--link-address={box.address}", f"--state={self.folder / name}"]
            agent = KeptAgent(box, arguments, tokens[name], self.folder / f"{name}.log")
            self.agents.append(agent)
            agent.start()
        wait_for("both nodes online", lambda: self.panel.nodes_online() == 2, 60)
        self._furnish(f"deploy({ROUTE!r}, {self.fallback!r})")
        printed = self.panel.manage("api_key", "--user", "admin", "--name", "chaos")
        self.panel.key = printed.splitlines()[-1]
        wait_for("the deployment", lambda: not self.why_not_whole(), DEPLOY_SECONDS, self.story)

    def stop(self) -> None:
        for agent in self.agents:
            agent.stop()
        self.panel.stop()
        with contextlib.suppress(TimeoutError):
            wait_for("the last end", lambda: not self.processes(), LAST_SECONDS)
        self.left = self.processes()

    def why_not_whole(self) -> str:
        """What is not as it should be; empty when all is."""
        if unready := self.panel.readiness():
            return f"not ready: {unready}"
        if (online := self.panel.nodes_online()) != len(NODES):
            return f"{online} nodes online"
        if (status := self.panel.status()) != "ready":
            return f"the deployment is {status or 'silent'}"
        launches = self.panel.launches()
        wanted = ["primary", "fallback"] if self.fallback == "resident" else ["primary"]
        if [it.role for it in launches] != wanted:
            return f"launches: {[f'{it.role} {it.status}' for it in launches]}"
        unhealthy = [it.role for it in launches if self.health(it) != 200]
        return f"unhealthy: {unhealthy}" if unhealthy else ""

    def story(self) -> str:
        """For a failure's message."""
        lines = [self.why_not_whole(), *self.panel.events(), f"logs: {self.folder}"]
        return "\n".join(lines)

    def primary(self) -> Launch:
        found = [it for it in self.panel.launches() if it.role == "primary"]
        if not found:
            raise LookupError("There is no launch of the deployment.")
        return found[-1]

    def health(self, launch: Launch) -> int:
        return ask(f"http://{launch.host}:{launch.port}/health", launch.token, 1.0)[0]

    def stats(self, launch: Launch) -> dict[str, Any]:
        """Empty while the head does not answer."""
        code, answer = ask(f"http://{launch.host}:{launch.port}/stats", launch.token)
        return answer if code == 200 else {}

    def rank_pids(self, launch: Launch) -> list[int]:
        """In rank order. Raises LookupError unless the head knows them all."""
        pids = [rank.get("pid") for rank in self.stats(launch).get("ranks", [])]
        if not pids or None in pids:
            raise LookupError(f"The head names the ranks {pids}.")
        return [int(pid) for pid in pids if pid is not None]

    def head_pid(self, launch: Launch) -> int:
        """Whoever listens where the head should; there may be spares with the same command."""
        box = self.office.boxes[self.office.managed.index(launch.host)]
        pid = listener(with_words(box.pids(), "engine.head"), launch.port)
        if pid is None:
            raise LookupError("Nobody listens at the head's port.")
        return pid

    def processes(self) -> list[int]:
        """Everything of the fleet: in the boxes and of the panel."""
        inside = [pid for box in self.office.boxes for pid in box.pids()]
        return sorted({*inside, *self.panel.processes()})

    def _furnish(self, call: str) -> str:
        code = f"from tests.chaos import furnish; furnish.{call}"
        return self.panel.manage("shell", "--no-imports", "--command", code)


@contextlib.contextmanager
def fleet(fallback: str = "none", logs: Path | None = None) -> Iterator[Fleet]:
    """A started one; gone when left, its logs kept in `logs` if given."""
    with office() as place:
        it = Fleet(place, place.files, fallback)
        try:
            it.start()
            yield it
        finally:
            it.stop()
            if logs is not None:
                _keep_logs((place.files, place.state / "log"), logs)


def _keep_logs(folders: tuple[Path, ...], where: Path) -> None:
    where.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        for log in folder.rglob("*.log"):
            shutil.copyfile(log, where / log.name)
