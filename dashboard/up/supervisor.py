"""Keeps children running, names the ones that die, and ends them in order."""

import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from dashboard.embedded import EmbeddedError
from dashboard.up.child import Child, Program

LOG_BYTES = 8 * 1024 * 1024
POLL_SECONDS = 0.1


class Supervisor:
    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce
        self.children: dict[str, Child] = {}
        self.hurry = False
        """Set by a second Ctrl-C: what still runs is killed without waiting."""

    def start(self, program: Program) -> Child:
        shorten_log(program.log)
        child = Child(program)
        self.children[program.name] = child
        child.start()
        return child

    def check(self) -> None:
        """Name what died since the last look and start again what is due."""
        for child in self.children.values():
            if child.restart_at is not None:
                if time.monotonic() >= child.restart_at:
                    self._restart(child)
            elif not child.running:
                self._plan(child, child.obituary())
            shorten_log(child.program.log)

    def stop(self, *groups: Iterable[str]) -> None:
        """End the groups one after another, the members of a group together."""
        for names in groups:
            members = [self.children.pop(name) for name in names if name in self.children]
            for child in members:
                child.ask_to_stop()
            for child in members:
                self._wait_end(child)

    def _restart(self, child: Child) -> None:
        try:
            child.start()
        except (EmbeddedError, OSError) as error:
            self._plan(child, f"{child.name} could not be started: {error}")

    def _plan(self, child: Child, what: str) -> None:
        self._announce(f"{what} (starting it again in {child.plan_restart():g} s)")

    def _wait_end(self, child: Child) -> None:
        deadline = time.monotonic() + child.program.stop_seconds
        while child.running and time.monotonic() < deadline and not self.hurry:
            time.sleep(POLL_SECONDS / 4)
        if child.running and not self.hurry:
            self._announce(
                f"{child.name} did not end within {child.program.stop_seconds:g} s and is killed"
            )
        child.kill()


def shorten_log(log: Path, most: int = LOG_BYTES) -> None:
    """Bound a log that its process appends to: the old part moves aside, the file starts anew."""
    try:
        if log.exists() and log.stat().st_size > most:
            with log.open("r+b") as file:
                _keep_old_part(log)
                file.truncate(0)
    except OSError:  # A log that cannot be tended must not end what it is about.
        return


def _keep_old_part(log: Path) -> None:
    """On a full disk it is lost, and the room it took comes back."""
    beside = log.with_suffix(".log.1")
    try:
        shutil.copyfile(log, beside)
    except OSError:
        beside.unlink(missing_ok=True)
