"""Series that nobody sends: worked out from what is stored whenever a page asks for them."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from monitoring import metrics as m
from monitoring.accounts.box_energy import buckets, energy_per_token
from monitoring.charts.histograms import Quantile, bound, quantile
from monitoring.scopes import Subject
from monitoring.storage.series import Gain, History, LevelName, Series, gains

QUANTILES: dict[str, m.Metric] = {
    m.FIRST_TOKEN_QUANTILE.name: m.FIRST_TOKEN_BUCKET,
    m.INTER_TOKEN_QUANTILE.name: m.INTER_TOKEN_BUCKET,
    m.QUEUE_QUANTILE.name: m.QUEUE_BUCKET,
}
DERIVED: frozenset[str] = frozenset({*QUANTILES, m.ENERGY_PER_TOKEN.name})
SHARES = (("p50", 0.5), ("p95", 0.95))
SOURCE = "panel: histogram"
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
MOST_MINUTES = timedelta(days=2)
"""For a longer time whole hours are told, which are kept for longer too."""


def only_derived(metrics: Collection[str]) -> bool:
    return bool(metrics) and DERIVED.issuperset(metrics)


def derived(
    subjects: Sequence[Subject],
    metrics: Collection[str],
    since: datetime,
    until: datetime,
    points: int = 600,
) -> History:
    """Percentiles and energy by token, a row a bucket.

    `low` and `high` of a percentile are the bounds of the bar that it lies in; a row with a value
    and no `high` is more than the value, and nobody knows how much more.
    """
    step = _step(until - since, points)
    wanted = {QUANTILES[name].name: name for name in metrics if name in QUANTILES}
    times = list(buckets(since, until, step))
    series = (
        _quantiles(gains(subjects, wanted, since, until, step), wanted, times) if wanted else []
    )
    if m.ENERGY_PER_TOKEN.name in metrics:
        series += energy_per_token(subjects, since, until, step)
    level: LevelName = "hour" if step >= HOUR else "minute"
    return History(level, step.total_seconds(), series)


def _step(span: timedelta, points: int) -> timedelta:
    unit = HOUR if span > MOST_MINUTES else MINUTE
    return unit * max(1, math.ceil(span / unit / max(1, points)))


def _quantiles(
    grown: Iterable[Gain], wanted: dict[str, str], times: Sequence[float]
) -> list[Series]:
    """In the order of `wanted`, then of the shares; nothing for a subject without a bar."""
    bars: dict[tuple[str, str], dict[float, list[tuple[float, float]]]] = {}
    scopes: dict[tuple[str, str], str] = {}
    for gain in grown:
        upper = bound(gain.label)
        if upper is not None:
            one = gain.topic, gain.metric
            scopes[one] = gain.scope
            bars.setdefault(one, {}).setdefault(gain.at, []).append((upper, gain.amount))
    found = []
    for one, by_time in bars.items():
        topic, metric = one
        for label, share in SHARES:
            rows = {at: quantile(counted, share) for at, counted in by_time.items()}
            series = Series(
                topic, wanted[metric], scopes[one], label, "seconds", "derived", SOURCE, ""
            )
            _fill(series, rows, times)
            found.append(series)
    return found


def _fill(series: Series, rows: Mapping[float, Quantile | None], times: Sequence[float]) -> None:
    """A row for each bucket, so that one without requests breaks the line."""
    for at in times:
        found = rows.get(at)
        series.at.append(at)
        series.value.append(found.value if found else None)
        series.low.append(found.low if found else None)
        series.high.append(found.high if found else None)
