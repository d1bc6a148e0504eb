"""What one rank's steps took lately."""

from engine.head.windows import Window
from engine.protocol.steps import Timings

_SECONDS = 1.0


class StepTimes:
    """Of the last second's steps."""

    def __init__(self) -> None:
        self.total, self.compute = Window(_SECONDS), Window(_SECONDS)
        self.communicate = Window(_SECONDS)
        self._worked, self._lost = Window(_SECONDS), Window(_SECONDS)
        self._rested = 0
        """The last step before which there was nothing to do."""

    def rest_before(self, n: int) -> None:
        self._rested = n

    def add(self, n: int, timings: Timings) -> None:
        self.total.add(timings.total)
        self.compute.add(timings.compute)
        self.communicate.add(timings.communicate)
        idle = 0.0 if n == self._rested else timings.idle
        self._worked.add(timings.total + idle)
        self._lost.add(timings.pipeline + idle)

    def bubble(self) -> float | None:
        """Share of the time in which the rank had no work though there was some: between steps, and
        waiting for the stage before. None without steps."""
        worked = self._worked.total()
        return min(1.0, self._lost.total() / worked) if worked else None
