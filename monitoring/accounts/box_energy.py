"""What boxes took for a token over time: their counters' growth over the tokens that came of it."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from monitoring import metrics as m
from monitoring.accounts.energy import WHOLE, Used, used_by_box
from monitoring.alerts.fleet import simulated_nodes
from monitoring.scopes import Subject
from monitoring.storage.series import Gain, Series, gains

SOURCE = "panel: energy by token"
LEAST = 100.0
"""Tokens in a bucket; with fewer the boxes' idle draw would be told as a token's."""


def energy_per_token(
    subjects: Sequence[Subject], since: datetime, until: datetime, step: timedelta
) -> list[Series]:
    """One series, of the first engine: all real boxes of the scope over the tokens of all its
    engines.

    Only buckets in which every box is known and enough was written have a value.
    """
    engines = [subject for subject in subjects if subject.role == "engine"]
    made_up = simulated_nodes()
    boxes = [s for s in subjects if s.role in ("node", "gpu") and s.node not in made_up]
    nodes = {subject.node for subject in boxes if subject.role == "node"}
    if not engines or not nodes:
        return []
    used = used_by_box(gains(boxes, [m.ENERGY.name], since, until, step))
    tokens = _tokens(gains(engines, [m.GENERATED_TOKENS.name], since, until, step))
    series = Series(
        engines[0].topic, m.ENERGY_PER_TOKEN.name, "engine", "", "J/token", "derived", SOURCE, ""
    )
    for at in buckets(since, until, step):
        known = [used.get((node, at)) for node in nodes if node is not None]
        _append(series, at, _share(known, tokens.get(at, 0.0), step.total_seconds()))
    return [series] if any(value is not None for value in series.value) else []


def buckets(since: datetime, until: datetime, step: timedelta) -> Iterable[float]:
    """Their beginnings: multiples of the step since the epoch."""
    seconds = step.total_seconds()
    at = since.timestamp() // seconds * seconds
    while at < until.timestamp():
        yield at
        at += seconds


def _tokens(grown: Iterable[Gain]) -> dict[float, float]:
    tokens: dict[float, float] = {}
    for gain in grown:
        tokens[gain.at] = tokens.get(gain.at, 0.0) + gain.amount
    return tokens


def _share(boxes: Collection[Used | None], tokens: float, seconds: float) -> float | None:
    if tokens < LEAST:
        return None
    joules = 0.0
    for box in boxes:
        if box is None or box.covered < WHOLE * seconds:
            return None
        joules += box.joules
    return joules / tokens


def _append(series: Series, at: float, value: float | None) -> None:
    series.at.append(at)
    for column in (series.value, series.low, series.high):
        column.append(value)
