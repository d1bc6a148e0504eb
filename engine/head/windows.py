"""What happened in the last seconds."""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from statistics import fmean, median

from engine.protocol.stats import HistogramStats


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


class Busy:
    """Share of the last `seconds` in which something was under way."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: float | None = None
        self._spans: deque[tuple[float, float]] = deque()

    def begin(self) -> None:
        """Again while it is under way changes nothing."""
        if self._since is None:
            self._since = self._clock()

    def end(self) -> None:
        if self._since is not None:
            self._spans.append((self._since, self._clock()))
            self._since = None
        self._expire()

    def share(self) -> float:
        self._expire()
        now = self._clock()
        oldest = now - self._seconds
        spans = [*self._spans, (self._since if self._since is not None else now, now)]
        busy = sum(end - max(begin, oldest) for begin, end in spans)
        return min(1.0, busy / self._seconds)

    def _expire(self) -> None:
        oldest = self._clock() - self._seconds
        while self._spans and self._spans[0][1] <= oldest:
            self._spans.popleft()


class Histogram:
    """Everything that was measured, counted by upper bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def stats(self) -> HistogramStats:
        return HistogramStats(self.bounds, tuple(accumulate(self.counts)), self.sum)

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper bound, values up to it), ending with `+Inf`, for Prometheus."""
        names = [*map(str, self.bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self.counts)), strict=True))
