"""A short memory of what every rank was at, for alerts about silence and for post-mortems."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from monitoring.models.phases import RankMoment

KEPT = timedelta(minutes=10)
FRESH = timedelta(seconds=15)
"""A head reports every 5 s and on every change; an older report says nothing of now."""
AT_WORK = "ready"
"""What a head says of itself whose ranks should all be there."""


@dataclass(frozen=True)
class RankNow:
    rank: int
    phase: str
    doing: str
    layer: int | None
    step: int
    doing_seconds: float | None
    silent_seconds: float | None


def keep(launch: str, status: str, ranks: Sequence[RankNow]) -> None:
    """Remember one head's report."""
    told = [
        {
            "rank": one.rank,
            "phase": one.phase,
            "doing": one.doing,
            "layer": one.layer,
            "step": one.step,
            "doing_seconds": one.doing_seconds,
            "silent_seconds": one.silent_seconds,
        }
        for one in ranks
    ]
    RankMoment.objects.create(launch=launch, at=timezone.now(), status=status, ranks=told)


def forget(now: datetime) -> None:
    RankMoment.objects.filter(at__lt=now - KEPT).delete()


def between(launches: Sequence[str], since: datetime, until: datetime) -> list[dict[str, Any]]:
    """Every moment of these launches, the oldest first."""
    found = RankMoment.objects.filter(launch__in=launches, at__range=(since, until))
    return [
        {"launch": one.launch, "at": one.at, "status": one.status, "ranks": one.ranks}
        for one in found.order_by("at", "pk")
    ]


def pulses(now: datetime) -> dict[str, float]:
    """Subject of a rank -> seconds since it said anything, of engines that are at work."""
    newest = RankMoment.objects.filter(at__gt=now - FRESH).order_by("launch", "-at", "-pk")
    return {
        f"launch:{moment.launch}:rank{rank['rank']}": float(rank["silent_seconds"])
        for moment in newest.distinct("launch")
        if moment.status == AT_WORK
        for rank in moment.ranks
        if rank["silent_seconds"] is not None
    }
