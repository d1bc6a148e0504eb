"""Readings at times of one's choice, and what the roll-ups should make of them, in plain Python."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from math import log10

from django.db import connection
from django.utils import timezone

from monitoring.metrics import CPU_UTILIZATION, ENERGY, FIRST_TOKEN_BUCKET, NOISE
from monitoring.samples import Sample, measured, unavailable
from monitoring.storage.levels import HOUR
from monitoring.storage.store import store
from tests.monitoring.cast import frame_of

TABLES = (
    "monitoring_reading",
    "monitoring_minute",
    "monitoring_hour",
    "monitoring_progress",
    "monitoring_due",
)
REASON = "The meter does not answer."
SHAPES = {CPU_UTILIZATION: "g", ENERGY: "c", NOISE: "l", FIRST_TOKEN_BUCKET: "b"}
METRICS = tuple(SHAPES)

Number = float | None
Row = tuple[float, str, tuple[float, float, float, float]]
"""Seconds after the beginning, less than 900, which layout, a number for each of METRICS."""


def beginning() -> datetime:
    """The last quarter of an hour that is long over and still kept."""
    return HOUR.floor(timezone.now()) - 2 * HOUR.step - timedelta(minutes=15)


def samples(layout: str, numbers: Sequence[float]) -> list[Sample]:
    """`layout` names the metrics' first letters in their order; a capital one is absent."""
    found = []
    for letter in layout:
        metric = next(m for m in METRICS if m.name[0] == letter.lower())
        number = numbers[METRICS.index(metric)]
        label = "le=1" if metric is FIRST_TOKEN_BUCKET else ""
        if letter.isupper():
            found.append(unavailable(metric, REASON, source="m", scope="host", label=label))
        else:
            found.append(measured(metric, number, source="m", scope="host", label=label))
    return found


def keep(node: int, start: datetime, rows: Iterable[Row]) -> None:
    store(
        [
            frame_of(node, seq, start.timestamp() + at, samples(layout, numbers))
            for seq, (at, layout, numbers) in enumerate(rows)
        ]
    )


def forget_all() -> None:
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"DELETE FROM {table}")


@dataclass
class Came:
    """What one metric came to in one bucket, over all layouts."""

    numbers: list[float] = field(default_factory=list)
    gain: Number = None

    def summary(self, shape: str) -> tuple[int, Number, Number, Number, Number, Number]:
        if not self.numbers:
            return 0, None, None, None, None, None
        low, high = min(self.numbers), max(self.numbers)
        mean = sum(self.numbers) / len(self.numbers)
        if shape == "l":
            mean = 10 * log10(sum(10 ** (n / 10) for n in self.numbers) / len(self.numbers))
        gain = self.gain if shape in "cb" else None
        if shape == "b":
            return len(self.numbers), None, None, None, self.numbers[-1], gain
        return len(self.numbers), low, mean, high, self.numbers[-1], gain


def expected(rows: Sequence[Row], seconds: int) -> dict[tuple[int, str], Came]:
    """By bucket (seconds after the beginning) and shape; growth is judged by the minute."""
    came: dict[tuple[int, str], Came] = defaultdict(Came)
    most = _most(rows)
    before: dict[str, tuple[float, float]] = {}
    for at, layout, numbers in rows:
        for metric, number in zip(METRICS, numbers, strict=True):
            if metric.name[0] not in layout:
                continue
            one = came[int(at // seconds) * seconds, SHAPES[metric]]
            one.numbers.append(number)
            old = before.get(metric.name)
            if old is not None and at - old[0] <= most[at // 60]:
                grown = number - old[1] if number >= old[1] else number
                one.gain = grown + (one.gain or 0.0)
            before[metric.name] = at, number
    return came


def covered(rows: Sequence[Row], seconds: int) -> dict[int, float]:
    """By bucket, the time between readings that are not too far apart."""
    most = _most(rows)
    found: dict[int, float] = defaultdict(float)
    for (before, *_old), (at, *_new) in pairwise(rows):
        if at - before <= most[at // 60]:
            found[int(at // seconds) * seconds] += at - before
    return found


def _most(rows: Sequence[Row]) -> dict[float, float]:
    """By minute, the longest step that counts: three of its shortest, of 1 to 10 s."""
    steps: dict[float, list[float]] = defaultdict(list)
    for (before, *_old), (at, *_new) in pairwise(rows):
        steps[at // 60].append(at - before)
    most: dict[float, float] = defaultdict(lambda: 3.0)
    for minute, found in steps.items():
        most[minute] = 3 * min(10.0, max(1.0, min(found)))
    return most
