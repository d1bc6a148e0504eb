"""Where somebody is signed in, and ending that."""

from dataclasses import dataclass
from datetime import datetime

from allauth.usersessions.models import UserSession
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from dashboard.audit import Actor, note

BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


@dataclass(frozen=True)
class Seen:
    """One browser; unknown parts are empty."""

    key: str
    current: bool
    since: datetime | None
    address: str
    browser: str
    system: str


def sessions_of(user: User, request: HttpRequest) -> list[Seen]:
    """The present one first; then the latest."""
    known = {row.session_key: row for row in UserSession.objects.filter(user=user)}
    own = request.session.session_key or ""
    keys = set(known) & set(_alive(known)) | {own}
    found = [_seen(key, known.get(key), key == own) for key in keys]
    return sorted(found, key=lambda one: (not one.current, -_moment(one.since)))


def end_others(user: User, request: HttpRequest, actor: Actor) -> int:
    """Every other session of theirs ends, also one that nobody wrote down."""
    own = request.session.session_key
    keys = [key for key in _all_keys(user) if key != own]
    Session.objects.filter(session_key__in=keys).delete()
    UserSession.objects.filter(user=user).exclude(session_key=own).delete()
    note(actor, "account.sign-out-everywhere", user, after={"sessions": len(keys)})
    return len(keys)


def _alive(known: dict[str, UserSession]) -> set[str]:
    rows = Session.objects.filter(session_key__in=list(known), expire_date__gt=timezone.now())
    return set(rows.values_list("session_key", flat=True))


def _all_keys(user: User) -> list[str]:
    rows = Session.objects.filter(expire_date__gt=timezone.now())
    return [
        row.session_key
        for row in rows.iterator(chunk_size=500)
        if row.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]


def _seen(key: str, row: UserSession | None, current: bool) -> Seen:
    if row is None:
        return Seen(key, current, None, "", "", "")
    agent = row.user_agent
    return Seen(
        key,
        current,
        row.created_at,
        str(row.ip),
        next((name for mark, name in BROWSERS if mark in agent), ""),
        next((name for mark, name in SYSTEMS if mark in agent), ""),
    )


def _moment(since: datetime | None) -> float:
    return since.timestamp() if since else 0.0
