"""Who asks: an API key in the Authorization header."""

import time
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.access import hidden_routes, may
from dashboard.choices import Role
from dashboard.gateway.errors import ApiError
from dashboard.gateway.patience import AWAY, once, patiently
from dashboard.models import ApiKey

LAST_USED_STEP = timedelta(minutes=1)
"""`last_used` is written at most this often, so that a busy key costs no write a request."""
TRUSTED_SECONDS = 60.0
"""How long a key is good without the database, after the database has last said so."""
MAX_TRUSTED = 4096

_trusted: dict[str, tuple[float, ApiKey]] = {}
"""By hash."""


async def owner_of(header: str) -> ApiKey:
    """`authenticate`, also while the database is away for a few seconds."""
    try:
        key = await once(authenticate, header)
    except AWAY:
        seen, known = _trusted.get(ApiKey.hash_of(_secret_of(header)), (0.0, None))
        if known is not None and time.monotonic() - seen < TRUSTED_SECONDS:
            return known
        key = await patiently(authenticate, header)
    if len(_trusted) >= MAX_TRUSTED:
        _trusted.clear()
    _trusted[key.hash] = (time.monotonic(), key)
    return key


def authenticate(header: str) -> ApiKey:
    """The live key named by an Authorization header; 401 for any other."""
    digest = ApiKey.hash_of(_secret_of(header))
    key = (
        ApiKey.objects.select_related("user")
        .filter(hash=digest, revoked=None, user__is_active=True)
        .first()
    )
    if key is None:
        _trusted.pop(digest, None)
        raise _refused(_("This API key is unknown or revoked. Make one on the page API keys."))
    if not may(key.user, Role.MEMBER):
        raise ApiError(
            _("The owner of this API key may only look. An administrator can change that."),
            status=403,
            code="not_allowed",
        )
    key.hidden_routes = hidden_routes(key.user)
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
