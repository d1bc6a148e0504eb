"""What a series usually reads: looked up now and then, because it takes long to find out."""

import statistics
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from monitoring.models import Usual
from monitoring.scopes import Subject
from monitoring.storage.series import Series, history

AFTER = timedelta(minutes=15)
"""How long an answer is believed."""
SPAN = timedelta(hours=24)
LEAST = 10
"""Buckets with a reading that are needed to call anything usual."""
POINTS = 288
AT_ONCE = 40
"""Series that one evaluation looks up at most."""


class Usuals:
    """Answers from what is stored, and notes what should be looked up afterwards."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._known = {row.series: row for row in Usual.objects.filter(at__gt=now - SPAN)}
        self._wanted: dict[str, tuple[Subject, str, str]] = {}

    def of(self, subject: Subject, metric: str, key: str) -> Usual | None:
        """None while it is not known yet, or there is too little to tell."""
        name = f"{subject.topic}/{key}"
        row = self._known.get(name)
        if row is None or self._now - row.at > AFTER:
            self._wanted[name] = (subject, metric, key)
        return row if row and row.value is not None else None

    def remembered(self, name: str, compute: Callable[[], float | None]) -> float | None:
        """Something that takes long to compute, as it was some minutes ago."""
        row = self._known.get(name)
        if row is None or self._now - row.at > AFTER:
            value = compute()
            row = Usual(series=name, value=value, at=self._now)
            self._known[name] = row
            _keep([row])
        return row.value

    def look_up(self) -> None:
        """The oldest of what was asked for."""
        oldest = sorted(self._wanted, key=lambda name: self._age(name), reverse=True)[:AT_ONCE]
        by_metric: dict[str, list[str]] = {}
        for name in oldest:
            by_metric.setdefault(self._wanted[name][1], []).append(name)
        for metric, names in by_metric.items():
            self._look(metric, names)
        Usual.objects.filter(at__lt=self._now - SPAN).delete()

    def _age(self, name: str) -> timedelta:
        row = self._known.get(name)
        return self._now - row.at if row else timedelta.max

    def _look(self, metric: str, names: list[str]) -> None:
        wanted = {self._wanted[name][0].topic: self._wanted[name][0] for name in names}
        found = history(
            list(wanted.values()), {metric}, self._now - SPAN, self._now - AFTER, POINTS
        )
        series = {f"{one.topic}/{one.key}": one for one in found.series}
        _keep(_row(name, series.get(name), self._now) for name in names)


def _row(name: str, series: Series | None, now: datetime) -> Usual:
    values = [value for value in series.value if value is not None] if series else []
    highs = [value for value in series.high if value is not None] if series else []
    enough = len(values) >= LEAST
    return Usual(
        series=name,
        value=statistics.median(values) if enough else None,
        highest=max(highs or values) if enough else None,
        at=now,
    )


def _keep(rows: Iterable[Usual]) -> None:
    Usual.objects.bulk_create(
        list(rows),
        update_conflicts=True,
        unique_fields=["series"],
        update_fields=["value", "highest", "at"],
    )
