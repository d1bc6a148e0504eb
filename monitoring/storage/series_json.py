"""Series in columns, as the charts' script wants them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from monitoring.scopes import Subject
from monitoring.storage.series import History, Series

Number = float | None


def series_json(
    history: History, subjects: Sequence[Subject], since: datetime, until: datetime, now: datetime
) -> dict[str, Any]:
    """`t` is in seconds after `from`; `v`, `lo` and `hi` stand under it, null where nothing is."""
    by_topic: dict[str, list[Series]] = {subject.topic: [] for subject in subjects}
    for series in history.series:
        by_topic[series.topic].append(series)
    return {
        "now": now.timestamp(),
        "level": history.level,
        "step": history.step_seconds,
        "from": since.timestamp(),
        "to": until.timestamp(),
        "subjects": [
            _subject(subject, by_topic[subject.topic], since.timestamp(), history)
            for subject in subjects
        ],
    }


def _subject(
    subject: Subject, found: Sequence[Series], origin: float, history: History
) -> dict[str, Any]:
    times = found[0].at if found else []
    single = history.step_seconds == 1
    return {
        "topic": subject.topic,
        "label": subject.label,
        "role": subject.role,
        "rank": int(subject.rank) if subject.rank else None,
        "node": subject.node,
        "t": [round(at - origin, 2) for at in times],
        "series": [_series(series, single) for series in found],
    }


def _series(series: Series, single: bool) -> dict[str, Any]:
    return {
        "key": series.key,
        "metric": series.metric,
        "scope": series.scope,
        "label": series.label,
        "unit": series.unit,
        "kind": series.kind,
        "source": series.source,
        "reason": gettext(series.reason) if series.reason else "",
        "v": _short(series.value),
        "lo": None if single else _short(series.low),
        "hi": None if single else _short(series.high),
    }


def _short(numbers: Sequence[Number]) -> list[Number]:
    return [None if number is None else float(f"{number:.7g}") for number in numbers]
