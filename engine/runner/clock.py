"""What a rank spends its time on, step by step."""

import time

from engine.parallel import Mesh
from engine.protocol.steps import Timings


class Clock:
    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self._began = 0.0
        self._idle = 0.0
        self._ended: float | None = None

    def restart(self) -> None:
        """What was before is no step's."""
        self._ended = None
        self._take()

    def begin(self) -> None:
        """A step has arrived."""
        self._began = time.perf_counter()
        self._idle = 0.0 if self._ended is None else self._began - self._ended

    def end(self) -> Timings:
        self._ended = time.perf_counter()
        total = self._ended - self._began
        group, pipeline = self._take()
        communicate = group + pipeline
        return Timings(total, max(0.0, total - communicate), communicate, self._idle, pipeline)

    def _take(self) -> tuple[float, float]:
        """Seconds spent communicating since the last call: in the stage, and between stages."""
        mesh = self._mesh
        seconds = mesh.tp.seconds, mesh.pipeline.seconds
        mesh.tp.seconds = mesh.pipeline.seconds = 0.0
        return seconds
