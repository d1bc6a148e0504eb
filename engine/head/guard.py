"""Keeps the host's last memory free: no new work while it is being eaten up."""

import time

from engine.errors import RequestError
from engine.rank.memory import available_bytes

_EVERY = 1.0
"""Seconds between two looks."""


class MemoryGuard:
    def __init__(self, floor: int) -> None:
        """`floor`: bytes that are to stay free on this host; 0 for no guard."""
        self._floor = floor
        self._looked_at = 0.0
        self._available: int | None = None

    def check(self) -> None:
        """Raises RequestError, to be tried again later, while too little is free."""
        if not self._floor:
            return
        now = time.monotonic()
        if now - self._looked_at >= _EVERY:
            self._looked_at, self._available = now, available_bytes()
        if self._available is not None and self._available < self._floor:
            raise RequestError(
                f"Only {self._available // 10**6} MB of memory are free on the head's machine, "
                f"less than the {self._floor // 10**6} MB that are to stay free; try again later.",
                code="memory_low",
                status=503,
            )
