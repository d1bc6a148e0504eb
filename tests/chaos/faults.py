"""What is done to a fleet, one kind a function: each strikes, and says when the wound is closed."""

import contextlib
import random
import resource
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException

from tests.chaos.asking import Asker
from tests.chaos.disk import fill
from tests.chaos.fleet import Fleet
from tests.chaos.panel import Launch
from tests.chaos.processes import send
from tests.chaos.references import question
from tests.chaos.waiting import wait_for

CABLE_SECONDS = 5.0
GONE_SECONDS = 30.0
"""Longer than a head waits for its ranks."""
PAUSED_SECONDS = 30.0
FULL_SECONDS = 10.0
FELT_SECONDS = 20.0
SAID_SECONDS = 15.0
ANSWER_SECONDS = 90.0


def _closed() -> bool:
    return True


@dataclass
class Mark:
    """One fault: when it struck, when its cause was taken away, what tells that it was repaired."""

    kind: str
    struck: float = 0.0
    target: str = ""
    healed: float | None = None
    detected: float | None = None
    felt: bool = True
    repaired: Callable[[], bool] = field(default=_closed, repr=False)
    all_moved_since: Callable[[float], bool] = field(default=lambda _moment: True, repr=False)

    def strike(self, target: str) -> None:
        self.target, self.struck = target, time.monotonic()


Strike = Callable[[Fleet, random.Random, Mark], None]


def rank_killed(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    number, pid = _some_rank(fleet, rng)
    mark.strike(f"rank {number}")
    send(pid, signal.SIGKILL)
    mark.repaired = lambda: _rank_replaced(fleet, pid)


def rank_stopped(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    """A hang: the process is there and does nothing."""
    number, pid = _some_rank(fleet, rng)
    launch = fleet.primary()
    mark.strike(f"rank {number}")
    send(pid, signal.SIGSTOP)
    _notice(fleet, launch, mark)
    mark.repaired = lambda: _rank_replaced(fleet, pid)


def head_killed(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    pid = fleet.head_pid(fleet.primary())
    mark.strike("head")
    send(pid, signal.SIGKILL)
    mark.repaired = lambda: _known(lambda: fleet.head_pid(fleet.primary()) != pid)


def agent_killed(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    agent = rng.choice(fleet.agents)
    pid = agent.pid
    mark.strike(agent.box.name)
    send(pid, signal.SIGKILL)
    mark.repaired = lambda: agent.pid not in (0, pid)


def agent_paused(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    agent = rng.choice(fleet.agents)
    pid = agent.pid
    mark.strike(agent.box.name)
    send(pid, signal.SIGSTOP)
    time.sleep(PAUSED_SECONDS)
    send(pid, signal.SIGCONT)
    mark.healed = time.monotonic()


def web_killed(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    _kill_of_panel(fleet, mark, "web", "dashboard.asgi:application")


def worker_killed(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    _kill_of_panel(fleet, mark, "worker", "celery", "worker")


def postgres_killed(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    _kill_of_panel(fleet, mark, "Postgres", "-D", f"{fleet.office.state}/postgres")


def valkey_killed(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    _kill_of_panel(fleet, mark, "Valkey", f"unixsocket:{fleet.panel.valkey_socket}")


def cable_out(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    mark.strike("cable")
    fleet.office.pull_cable()
    time.sleep(CABLE_SECONDS)
    fleet.office.plug_cable()
    mark.healed = time.monotonic()


def cable_gone(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    """For good, as far as the fleet can know: until others answer, or until it says that none do
    and has given up waiting."""
    mark.strike("cable")
    fleet.office.pull_cable()
    try:
        wait_for("a word of the lost cable", lambda: fleet.panel.status() != "ready", SAID_SECONDS)
        mark.detected = time.monotonic() - mark.struck
        if fleet.fallback == "none":
            time.sleep(max(0.0, mark.struck + GONE_SECONDS - time.monotonic()))
        else:
            said = time.monotonic()
            wait_for("the fallback", lambda: mark.all_moved_since(said), ANSWER_SECONDS)
    finally:
        fleet.office.plug_cable()
        mark.healed = time.monotonic()


def disk_full(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    mark.strike("state directory")
    with fill(fleet.office.state) as stay_full:
        while time.monotonic() < mark.struck + FULL_SECONDS:
            stay_full()
            time.sleep(0.2)
    mark.healed = time.monotonic()


def memory_limit(fleet: Fleet, rng: random.Random, mark: Mark) -> None:
    """No more address space from now on: the next large allocation fails. A prompt to be scored
    asks for one, for a rank that runs evenly takes nothing new."""
    number, pid = _some_rank(fleet, rng)
    before = resource.prlimit(pid, resource.RLIMIT_AS)
    mark.strike(f"rank {number}")
    resource.prlimit(pid, resource.RLIMIT_AS, (1, before[1]))
    scored = threading.Thread(target=_score_a_prompt, args=(fleet,), daemon=True)
    scored.start()
    try:
        wait_for("the allocation", lambda: _rank_left(fleet, pid), FELT_SECONDS)
        mark.repaired = lambda: _rank_replaced(fleet, pid)
    except TimeoutError:
        mark.felt = False
        resource.prlimit(pid, resource.RLIMIT_AS, before)


def _score_a_prompt(fleet: Fleet) -> None:
    asker = Asker(fleet.panel.url, fleet.panel.key)
    with contextlib.suppress(OSError, HTTPException):
        asker.whole(question("one two three four " * 100, 1, prompt_logprobs=0))


KINDS: dict[str, Strike] = {
    "rank-killed": rank_killed,
    "head-killed": head_killed,
    "agent-killed": agent_killed,
    "web-killed": web_killed,
    "worker-killed": worker_killed,
    "postgres-killed": postgres_killed,
    "valkey-killed": valkey_killed,
    "rank-stopped": rank_stopped,
    "cable-out": cable_out,
    "cable-gone": cable_gone,
    "agent-paused": agent_paused,
    "disk-full": disk_full,
    "memory-limit": memory_limit,
}
SAME_PLACEMENT = ("rank-killed", "head-killed", "rank-stopped", "memory-limit")
"""After these the same ranks come back in the same boxes, with nothing to wait for outside."""


def _some_rank(fleet: Fleet, rng: random.Random) -> tuple[int, int]:
    pids = fleet.rank_pids(fleet.primary())
    number = rng.randrange(len(pids))
    return number, pids[number]


def _rank_replaced(fleet: Fleet, pid: int) -> bool:
    return _known(lambda: pid not in fleet.rank_pids(fleet.primary()))


def _rank_left(fleet: Fleet, pid: int) -> bool:
    return pid not in fleet.processes()


def _known(condition: Callable[[], bool]) -> bool:
    """False also while nobody knows."""
    try:
        return condition()
    except LookupError:
        return False


def _notice(fleet: Fleet, launch: Launch, mark: Mark) -> None:
    """Until the head's health or the deployment's status tells of it."""
    wait_for(
        "a word of the stopped rank",
        lambda: fleet.health(launch) != 200 or fleet.panel.status() != "ready",
        SAID_SECONDS,
    )
    mark.detected = time.monotonic() - mark.struck


def _kill_of_panel(fleet: Fleet, mark: Mark, name: str, *words: str) -> None:
    pid = fleet.panel.pid_of(*words)
    mark.strike(name)
    send(pid, signal.SIGKILL)

    def replaced() -> bool:
        found = fleet.panel.pids_of(*words)
        return bool(found) and pid not in found

    mark.repaired = replaced
