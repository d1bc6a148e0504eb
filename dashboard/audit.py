"""Writing the audit trail: call `note` in the transaction that makes the change."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Model
from django.http import HttpRequest
from django.utils import timezone

from dashboard.models import AuditEntry


@contextmanager
def listening() -> Iterator[list[str]]:
    """Tells which actions are noted meanwhile."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


@dataclass(frozen=True)
class Actor:
    """Who does something, and from where. `str()` is the name that history shows."""

    name: str
    user_id: int | None = None
    via: str = "panel"
    address: str = ""

    def __str__(self) -> str:
        return self.name


LEAST_DAYS = 30
"""However short a retention is asked for."""

_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)
"""What the request that is being answered has noted so far; None outside of requests."""

PANEL = Actor("Tandem")
"""Nobody: a schedule or the panel's own care."""


def actor_of(request: HttpRequest, via: str = "form") -> Actor:
    """The signed-in person of a request."""
    user = request.user
    address = request.META.get("REMOTE_ADDR") or ""
    return Actor(user.get_username(), user.pk, via, address)


def note(
    actor: Actor,
    action: str,
    target: Model | str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    why: str = "",
) -> None:
    """One line of the trail. `before` and `after` hold no secrets."""
    noted = _noted.get()
    if noted is not None:
        noted.append(action)
    AuditEntry.objects.create(
        actor=actor.name[:150],
        user_id=actor.user_id,
        via=actor.via,
        address=actor.address,
        action=action,
        kind=action.partition(".")[0],
        target=str(target)[:200],
        target_id=target.pk if isinstance(target, Model) else None,
        before=before,
        after=after,
        why=why[:300],
    )


def forget(days: int) -> int:
    """Remove what is older than that, and note how much it was. The one way by which the database
    lets anything go."""
    before = timezone.now() - timedelta(days=max(days, LEAST_DAYS))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL tandem.audit_purge = 'on'")
        gone, _by_model = AuditEntry.objects.filter(at__lt=before).delete()
        cursor.execute("SET LOCAL tandem.audit_purge = 'off'")
        if gone:
            note(PANEL, "audit.purge", "audit", after={"removed": gone, "until": str(before)})
    return gone
