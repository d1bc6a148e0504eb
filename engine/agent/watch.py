"""Looks at every process twice a second: is it at work, and does it leave the host its memory?"""

import asyncio
import logging
from collections.abc import Mapping
from typing import NoReturn

from engine.agent.child import Child
from engine.agent.guard import Weighed, choose, is_short
from engine.agent.health import TICK_SECONDS, Health
from engine.agent.proc import available_bytes, look_at, private_bytes
from engine.agent.process import EngineProcess
from engine.agent.spares import Spares

log = logging.getLogger(__name__)

GUARD_TICKS = 2
PAUSE_TICKS = 6
"""After one was ended, the kernel takes a moment to have its memory back."""


class Watch:
    def __init__(self, processes: Mapping[str, EngineProcess], spares: Spares) -> None:
        self._processes = processes
        self._spares = spares
        self._health: dict[str, tuple[Child, Health]] = {}
        self._guard_in = GUARD_TICKS

    async def run(self) -> NoReturn:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.tick()

    def tick(self) -> None:
        living = {
            key: process
            for key, process in self._processes.items()
            if process.child and process.child.pid and not process.child.ended.is_set()
        }
        self._look_at_health(living)
        self._guard_in -= 1
        if self._guard_in <= 0:
            self._guard_in = GUARD_TICKS
            self._guard_memory(living)

    def _look_at_health(self, living: Mapping[str, EngineProcess]) -> None:
        health: dict[str, tuple[Child, Health]] = {}
        for key, process in living.items():
            child = process.child
            if child is None or child.pid is None:
                continue
            known = self._health.get(key)
            health[key] = known if known and known[0] is child else (child, Health())
            stopped = look_at(child.pid).state == "T" or child.stopped_keeper
            if reason := health[key][1].tick(stopped, child.pulses):
                log.warning("%s: %s", key, reason)
                process.end_because(reason)
        self._health = health

    def _guard_memory(self, living: Mapping[str, EngineProcess]) -> None:
        floor = max((process.spec.memory_floor for process in living.values()), default=0)
        available = available_bytes()
        if is_short(available, floor) and self._spares.drop_all():
            self._guard_in = PAUSE_TICKS
            return
        weighed = [
            Weighed(key, private_bytes(process.pid or 0), process.spec.planned_bytes)
            for key, process in living.items()
        ]
        if chosen := choose(weighed, available, floor):
            key, reason = chosen
            log.warning("%s: %s", key, reason)
            living[key].end_because(reason, own_fault=True)
            self._guard_in = PAUSE_TICKS
