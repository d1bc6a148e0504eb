"""Budgets, prices and memberships as this process has last read them."""

import time
from dataclasses import dataclass, field

from dashboard import panel_settings
from dashboard.gateway.budgets.limits import KINDS, Limit, Price
from dashboard.gateway.patience import AWAY, once, patiently
from dashboard.models import ApiKey, Budget, Deployment, RoutePrice, Team

TRUSTED_SECONDS = 1.0
"""Shorter than counters take to open, so that a new budget counts from its first moment."""


@dataclass(frozen=True)
class State:
    limits: dict[str, tuple[Limit, ...]] = field(default_factory=dict)
    """By subject."""
    prices: dict[str, Price] = field(default_factory=dict)
    contexts: dict[str, int] = field(default_factory=dict)
    teams: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Subjects of teams by user."""
    warning: int = 80

    def subjects(self, key: ApiKey) -> tuple[str, ...]:
        return (f"key:{key.pk}", f"user:{key.user_id}", *self.teams.get(key.user_id, ()))

    def limits_of(self, subjects: tuple[str, ...]) -> list[Limit]:
        return [limit for subject in subjects for limit in self.limits.get(subject, ())]


_read: tuple[float, State] | None = None


async def state() -> State:
    global _read
    if _read is not None and time.monotonic() - _read[0] < TRUSTED_SECONDS:
        return _read[1]
    began = time.monotonic()
    try:
        found = await (once(read) if _read else patiently(read))
    except AWAY:
        assert _read is not None
        return _read[1]
    _read = began, found
    return found


def forget() -> None:
    global _read
    _read = None


def read() -> State:
    prices = {row.route: Price(row.prompt, row.completion) for row in RoutePrice.objects.all()}
    contexts = {
        row.name: row.max_model_len or row.model.shape.context_length
        for row in Deployment.objects.select_related("model")
    }
    teams: dict[int, tuple[str, ...]] = {}
    for user, team in Team.members.through.objects.values_list("user_id", "team_id"):
        teams[user] = (*teams.get(user, ()), f"team:{team}")
    percent = panel_settings.current()["budget_warning_percent"]
    warning = percent if isinstance(percent, int) else 80
    return State(read_limits(), prices, contexts, teams, warning)


def read_limits() -> dict[str, tuple[Limit, ...]]:
    rows = Budget.objects.select_related("user", "key", "team")
    found = {subject_of(row): limits_in(row) for row in rows}
    return {subject: limits for subject, limits in found.items() if limits}


def subject_of(row: Budget) -> str:
    if row.user_id is not None:
        return f"user:{row.user_id}"
    return f"key:{row.key_id}" if row.key_id is not None else f"team:{row.team_id}"


def limits_in(row: Budget) -> tuple[Limit, ...]:
    found = []
    for kind, (what, _span) in KINDS.items():
        value = getattr(row, kind)
        if value is not None:
            most = int(value * 1_000_000) if what == "money" else int(value)
            found.append(Limit(subject_of(row), kind, most, str(row)))
    return tuple(found)
