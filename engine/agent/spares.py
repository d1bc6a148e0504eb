"""One spare for each settled process: the same program, started and imported, without its work.

A process that is started again from its spare has only to load. Spares are made one at a time, with
the processor time that is left over, and none while memory is short.
"""

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from typing import NoReturn

from engine.agent.child import Child
from engine.agent.priority import lower
from engine.agent.proc import available_bytes, look_at
from engine.agent.process import EngineProcess

log = logging.getLogger(__name__)

SWITCH = "TANDEM_SPARES"
TICK_SECONDS = 0.5
SETTLED_SECONDS = 3.0
"""After a start, what loads needs the processor more than a spare does."""
QUIET_TICKS = 2
"""A spare that used no processor time for so many looks has done what it can do."""
ROOM_BYTES = 1 << 30
"""What has to be free beside the floor for a spare to be worth it."""
TRIES = 3
"""A program whose spares end by themselves is not made for it."""


class Spares:
    def __init__(self, processes: Mapping[str, EngineProcess]) -> None:
        self._processes = processes
        self.enabled = os.environ.get(SWITCH, "1") != "0"
        self._warming: Child | None = None
        self._ticks = 0
        self._quiet = 0
        self._lost: dict[str, int] = {}

    async def run(self) -> NoReturn:
        while True:
            if self.enabled:
                self.tend(time.time())
            await asyncio.sleep(TICK_SECONDS)

    def tend(self, now: float) -> None:
        """One look: forget the dead, see to the one that is warming up, else begin another."""
        for key, process in self._processes.items():
            if process.spare and process.spare.ended.is_set():
                process.spare = None
                self._lost[key] = self._lost.get(key, 0) + 1
        self._lost = {key: n for key, n in self._lost.items() if key in self._processes}
        if self._warming and self._still_warming(self._warming):
            return
        self._warming = None
        needy = self._in_need(now)
        if needy and _has_room(needy[0].spec.memory_floor):
            self._begin(needy[0])

    def drop_all(self) -> bool:
        """Memory is short: whether there was any."""
        spared = [process for process in self._processes.values() if process.spare]
        for process in spared:
            process.drop_spare()
        return bool(spared)

    def _in_need(self, now: float) -> list[EngineProcess]:
        """Ranks first: they import the most."""
        found = [
            process
            for key, process in self._processes.items()
            if process.spare is None
            and process.life == "alive"
            and process.status == "running"
            and process.child is not None
            and now - process.started_at >= SETTLED_SECONDS
            and self._lost.get(key, 0) < TRIES
            and process.waits_for_its_work
        ]
        return sorted(found, key=lambda process: process.spec.role != "rank")

    def _begin(self, process: EngineProcess) -> None:
        try:
            process.spawn_spare()
        except OSError as error:
            log.warning("There is no spare for %s: %s", process.spec.key, error)
            self._lost[process.spec.key] = TRIES
            return
        self._warming, self._ticks, self._quiet = process.spare, -1, 0

    def _still_warming(self, spare: Child) -> bool:
        spares = [process.spare for process in self._processes.values()]
        if spare not in spares:  # It is in use, or gone.
            return False
        if spare.pid is None:
            return True
        if self._ticks < 0:
            lower(spare)
        used = look_at(spare.pid).ticks
        self._quiet = self._quiet + 1 if used == self._ticks else 0
        self._ticks = used
        return self._quiet < QUIET_TICKS


def _has_room(floor: int) -> bool:
    available = available_bytes()
    return available is None or available > floor + ROOM_BYTES
