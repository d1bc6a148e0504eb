"""What happened in the last seconds."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import fmean, median


class Window:
    """Values of the last `seconds`, oldest dropped first."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._values: deque[tuple[float, float]] = deque()

    def add(self, value: float) -> None:
        self._values.append((self._clock(), value))
        self._expire()

    def values(self) -> list[float]:
        self._expire()
        return [value for _, value in self._values]

    def mean(self) -> float | None:
        """None when nothing happened."""
        values = self.values()
        return fmean(values) if values else None

    def median(self) -> float | None:
        values = self.values()
        return median(values) if values else None

    def total(self) -> float:
        return sum(self.values())

    def _expire(self) -> None:
        oldest = self._clock() - self._seconds
        while self._values and self._values[0][0] < oldest:
            self._values.popleft()


class Histogram:
    """Counts by upper bound, for Prometheus."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        index = next((i for i, bound in enumerate(self.bounds) if value <= bound), -1)
        self.counts[index] += 1
        self.sum += value

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper bound, values up to it), ending with `+Inf`."""
        total, rows = 0, []
        names = [*map(str, self.bounds), "+Inf"]
        for name, count in zip(names, self.counts, strict=True):
            total += count
            rows.append((name, float(total)))
        return rows
