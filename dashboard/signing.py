"""Who signs in, out, or fails to, leaves a line in the audit trail."""

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from dashboard.audit import Actor, actor_of, note


def follow() -> None:
    user_logged_in.connect(_signed_in, dispatch_uid="audit")
    user_logged_out.connect(_signed_out, dispatch_uid="audit")
    user_login_failed.connect(_failed, dispatch_uid="audit")


def _signed_in(request: HttpRequest | None, user: User, **_more: Any) -> None:
    note(_actor(request, user), "account.sign_in", user)


def _signed_out(request: HttpRequest | None, user: User | None, **_more: Any) -> None:
    if user is not None:
        note(_actor(request, user), "account.sign_out", user)


def _failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_more: Any) -> None:
    """The name as it was typed; nothing else of what was typed."""
    typed = str(credentials.get("username") or credentials.get("email") or "?")[:150]
    note(Actor(typed, None, "form", _address(request)), "account.sign_in_failed", typed)


def _actor(request: HttpRequest | None, user: User) -> Actor:
    if request is not None and getattr(request, "user", None) == user:
        return actor_of(request)
    return Actor(user.get_username(), user.pk, "form", _address(request))


def _address(request: HttpRequest | None) -> str:
    return (request.META.get("REMOTE_ADDR") or "") if request is not None else ""
