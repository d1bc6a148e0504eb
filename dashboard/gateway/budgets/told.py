"""What has been used, as the rows of requests in Postgres tell it."""

from datetime import datetime
from typing import Any

import redis
from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from dashboard.gateway.budgets import state
from dashboard.gateway.budgets.counters import EPOCH, OPENING
from dashboard.gateway.budgets.limits import KINDS, Limit, end, start
from dashboard.models import ApiRequest, Team

LATELY = 40_000
"""So many rows came last at most since a process could have told of its own."""
COUNTED = Q(charged_tokens__isnull=False)
FIELD = {"tokens": "charged_tokens", "money": "charged_micros"}


def used(limit: Limit, now: datetime) -> int:
    rows = _of(limit.subject).filter(
        COUNTED, begun__gte=start(limit.kind, now), begun__lt=end(limit.kind, now)
    )
    what = KINDS[limit.kind][0]
    total = Count("pk") if what == "requests" else Sum(FIELD[what])
    return int(rows.aggregate(total=total)["total"] or 0)


def snapshot() -> tuple[list[str], list[tuple[str, int, int]]]:
    """Requests that are in it, of late, and what every limited counter stands at."""
    ids = list(ApiRequest.objects.order_by("-pk").values_list("request", flat=True)[:LATELY])
    now = timezone.now()
    lines = [
        (limit.counter(now), used(limit, now), left(limit, now))
        for limits in state.read_limits().values()
        for limit in limits
    ]
    return ids, lines


def left(limit: Limit, at: datetime) -> int:
    """Seconds until its window is over."""
    return max(1, int((end(limit.kind, at) - timezone.now()).total_seconds()) + 1)


def _of(subject: str) -> QuerySet[ApiRequest]:
    kind, _colon, pk = subject.partition(":")
    if kind == "team":
        members = Team.members.through.objects.filter(team_id=pk).values("user_id")
        return ApiRequest.objects.filter(user_id__in=members)
    field: dict[str, Any] = {f"{kind}_id": pk}
    return ApiRequest.objects.filter(**field)


def recount() -> None:
    """Budgets or memberships changed: counters are worked out anew before the next request."""
    state.forget()
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2) as client:
            client.delete(EPOCH, OPENING)
    except redis.RedisError:
        pass  # Whoever cannot reach it admits nothing, and one that restarts has none anyway.
