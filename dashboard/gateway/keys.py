"""Who asks: an API key in the Authorization header."""

import time
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.access import hidden_routes, may
from dashboard.choices import Role
from dashboard.gateway.errors import ApiError
from dashboard.gateway.patience import AWAY, once, patiently
from dashboard.models import ApiKey

LAST_USED_STEP = timedelta(minutes=1)
"""`last_used` is written at most this often, so that a busy key costs no write a request."""
FRESH_SECONDS = 2.0
"""How long a process goes by a key as it read it; after that a revoked one is refused."""
TRUSTED_SECONDS = 60.0
"""How long a key is good without the database, after the database has last said so."""
MAX_TRUSTED = 4096

_trusted: dict[str, tuple[float, ApiKey]] = {}
"""By hash."""


async def owner_of(header: str) -> ApiKey:
    """`authenticate`, also while the database is away for a few seconds."""
    digest = ApiKey.hash_of(_secret_of(header))
    try:
        seen, known = _trusted.get(digest, (0.0, None))
        if known is not None and known.expired:
            known = None
        if known is not None and time.monotonic() - seen < FRESH_SECONDS:
            return known
        key = await once(authenticate, header)
    except AWAY:
        if known is not None and time.monotonic() - seen < TRUSTED_SECONDS:
            return known
        key = await patiently(authenticate, header)
    if len(_trusted) >= MAX_TRUSTED:
        _trusted.clear()
    _trusted[digest] = (time.monotonic(), key)
    return key


def authenticate(header: str, scope: str = "asks") -> ApiKey:
    """The live key named by an Authorization header; 401 for any other, 403 without the scope."""
    digest = ApiKey.hash_of(_secret_of(header))
    key = (
        ApiKey.objects.select_related("user")
        .filter(
            Q(hash=digest) | Q(old_hash=digest, old_until__gt=timezone.now()),
            Q(expires=None) | Q(expires__gt=timezone.now()),
            revoked=None,
            user__is_active=True,
        )
        .first()
    )
    if key is None:
        _trusted.pop(digest, None)
        raise _refused(
            _("This API key is unknown, expired or revoked. Make one on the page API keys.")
        )
    if not may(key.user, Role.MEMBER):
        raise ApiError(
            _("The owner of this API key may only look. An administrator can change that."),
            status=403,
            code="not_allowed",
        )
    if scope and not getattr(key, scope):
        text = _("This API key may not do that: it lacks the scope. Its owner can make another.")
        raise ApiError(text, status=403, code="scope_missing")
    key.hidden_routes = hidden_routes(key.user)
    if scope != "asks":  # Of those, records tell the use, beside the requests themselves.
        _touch(key)
    return key


def _secret_of(header: str) -> str:
    scheme, _space, secret = header.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise _refused(_("No API key was sent. Put it in the header: Authorization: Bearer KEY."))
    return secret.strip()


def _refused(message: str) -> ApiError:
    return ApiError(message, status=401, code="invalid_api_key")


def _touch(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used is None or now - key.last_used >= LAST_USED_STEP:
        ApiKey.objects.filter(pk=key.pk).update(last_used=now)
