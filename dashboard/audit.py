"""Writing the audit trail: call `note` in the transaction that makes the change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from dashboard.models import AuditEntry


@dataclass(frozen=True)
class Actor:
    """Who does something, and from where. `str()` is the name that history shows."""

    name: str
    user_id: int | None = None
    via: str = "panel"
    address: str = ""

    def __str__(self) -> str:
        return self.name


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
