"""Who asks: an API key in the Authorization header."""

from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError
from dashboard.models import ApiKey

LAST_USED_STEP = timedelta(minutes=1)
"""`last_used` is written at most this often, so that a busy key costs no write a request."""


def authenticate(header: str) -> ApiKey:
    """The live key named by an Authorization header; 401 for any other."""
    scheme, _space, secret = header.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise _refused(_("No API key was sent. Put it in the header: Authorization: Bearer KEY."))
    key = (
        ApiKey.objects.select_related("user")
        .filter(hash=ApiKey.hash_of(secret.strip()), revoked=None, user__is_active=True)
        .first()
    )
    if key is None:
        raise _refused(_("This API key is unknown or revoked. Make one on the page API keys."))
    _touch(key)
    return key


def _refused(message: str) -> ApiError:
    return ApiError(message, status=401, code="invalid_api_key")


def _touch(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used is None or now - key.last_used >= LAST_USED_STEP:
        ApiKey.objects.filter(pk=key.pk).update(last_used=now)
