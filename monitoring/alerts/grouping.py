"""What belongs together, and what nobody wants to hear of. Pure: rows in, answers out."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

REOPENS = timedelta(minutes=10)
"""What fires again within that time goes on with the incident that had ended."""
TOGETHER = timedelta(minutes=10)
"""Trouble of a box and of what runs on it is one incident when it begins within that time."""


@dataclass(frozen=True)
class Place:
    """Where an alert or incident is; both None for the fleet as a whole."""

    node: int | None = None
    deployment: int | None = None


@dataclass(frozen=True)
class Open:
    """An incident that is open, or ended a moment ago."""

    pk: int
    place: Place
    opened: datetime
    closed: datetime | None = None


def home(
    place: Place, incidents: Iterable[Open], runs_on: Mapping[int, Collection[int]], now: datetime
) -> int | None:
    """The incident that an alert belongs to. `runs_on`: deployment -> its nodes."""
    alive = [one for one in incidents if one.closed is None or now - one.closed <= REOPENS]
    for one in alive:
        if _same(place, one.place):
            return one.pk
    for one in alive:
        if now - one.opened <= TOGETHER and _related(place, one.place, runs_on):
            return one.pk
    return None


def _same(place: Place, other: Place) -> bool:
    if place == other:
        return True
    if place.node is not None and place.node == other.node:
        return True
    return place.deployment is not None and place.deployment == other.deployment


def _related(place: Place, other: Place, runs_on: Mapping[int, Collection[int]]) -> bool:
    return _on(place, other, runs_on) or _on(other, place, runs_on)


def _on(engine: Place, box: Place, runs_on: Mapping[int, Collection[int]]) -> bool:
    """Whether `engine` is a deployment with ranks on the node `box`."""
    if engine.deployment is None or box.node is None:
        return False
    return box.node in runs_on.get(engine.deployment, ())


@dataclass(frozen=True)
class Cover:
    """What a silence or a maintenance window covers: all that is set must match."""

    rule: int | None = None
    node: int | None = None
    deployment: int | None = None


def covered(
    rule: int | None, place: Place, covers: Iterable[Cover], runs_on: Mapping[int, Collection[int]]
) -> bool:
    """Work on a node covers the deployments that run there: their trouble is expected too."""
    return any(
        cover.rule in (None, rule)
        and cover.deployment in (None, place.deployment)
        and _on_node(cover.node, place, runs_on)
        for cover in covers
    )


def _on_node(node: int | None, place: Place, runs_on: Mapping[int, Collection[int]]) -> bool:
    if node is None or place.node == node:
        return True
    if place.node is not None or place.deployment is None:
        return False
    return node in runs_on.get(place.deployment, ())
