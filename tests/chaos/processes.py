"""Finding and ending the processes of one fleet, without asking the fleet."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

END_SECONDS = 10.0
_LISTENING = "0A"


def of_state(state: Path) -> list[int]:
    """Pids of what `manage.py up` started with this state directory, and of itself.

    The two servers are known by their words: they overwrite their environment.
    """
    servers = {f"{state}/postgres", f"unixsocket:{state}/run/valkey.sock"}
    mark = f"TANDEM_STATE_DIR={state}"
    return [
        pid
        for pid in psutil.pids()
        if not servers.isdisjoint(command(pid)) or mark in _read(pid, "environ").split("\0")
    ]


def command(pid: int) -> list[str]:
    """Its words; none when it has gone. A title that a program gave itself is cut at blanks."""
    return _read(pid, "cmdline").replace("\0", " ").split()


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def with_words(pids: Iterable[int], *words: str) -> list[int]:
    """Those whose command line has all the words, as words of their own."""
    return [pid for pid in pids if set(words) <= set(command(pid))]


def listener(pids: Iterable[int], port: int) -> int | None:
    """The one among `pids` that listens on the TCP port of its own network namespace."""
    for pid in pids:
        sockets = _listening_sockets(pid, port)
        if sockets and sockets & _open_sockets(pid):
            return pid
    return None


def _listening_sockets(pid: int, port: int) -> set[str]:
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return set()
    parts = [line.split() for line in lines]
    return {
        f"socket:[{it[9]}]"
        for it in parts
        if it[3] == _LISTENING and int(it[1].split(":")[1], 16) == port
    }


def _open_sockets(pid: int) -> set[str]:
    found = set()
    folder = Path(f"/proc/{pid}/fd")
    try:
        descriptors = list(folder.iterdir())
    except OSError:
        return set()
    for descriptor in descriptors:
        try:
            found.add(str(descriptor.readlink()))
        except OSError:
            continue
    return found


def send(pid: int, number: signal.Signals) -> bool:
    """False when it has gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def end(pids: Iterable[int]) -> None:
    """Kill them and wait until they have gone; raises TimeoutError naming those that stay."""
    left = [pid for pid in pids if send(pid, signal.SIGKILL)]
    deadline = time.monotonic() + END_SECONDS
    while left := [pid for pid in left if _runs(pid)]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes that do not end: {left}")
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    """A zombie has ended; its parent has only not looked yet."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
