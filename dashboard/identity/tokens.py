"""An ID token, checked as OpenID Connect Core 3.1.3.7 asks: signature, issuer, audience, time and
nonce. Pure."""

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

import jwt
from django.utils.translation import gettext_noop as _

from dashboard.identity.discovery import ALGORITHMS
from dashboard.identity.errors import ProviderError
from dashboard.sentences import Sentence

LEEWAY = 60
"""Seconds by which the provider's clock may differ."""

NO_KEY = _("The identity token is signed with a key that the provider does not publish.")
BAD_SIGNATURE = _("The signature of the identity token is wrong.")
EXPIRED = _("The identity token has expired. Is the clock of one of the two machines wrong?")
OTHER_AUDIENCE = _("The identity token is meant for another application.")
OTHER_ISSUER = _("The identity token comes from another issuer.")
OTHER_NONCE = _("The identity token belongs to another sign-in. Please try again.")
NOT_SOUND = _("The identity token is not sound: %(why)s.")


def verify(
    token: str, keys: Sequence[Mapping[str, Any]], *, issuer: str, client_id: str, nonce: str
) -> dict[str, Any]:
    """Its claims. Raises ProviderError."""
    try:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in ALGORITHMS:
            raise ProviderError(Sentence(BAD_SIGNATURE))
        claims: dict[str, Any] = jwt.decode(
            token,
            key=_key(header, keys),
            algorithms=[header["alg"]],
            issuer=issuer,
            audience=client_id,
            leeway=LEEWAY,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except jwt.PyJWTError as error:
        raise ProviderError(_sentence(error)) from error
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if claims.get("azp", client_id) != client_id or (len(audiences) > 1 and "azp" not in claims):
        raise ProviderError(Sentence(OTHER_AUDIENCE))
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise ProviderError(Sentence(OTHER_NONCE))
    return claims


def _key(header: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> jwt.PyJWK:
    """The one it names; one that names none is fine where there is only one."""
    signing = [key for key in keys if key.get("use", "sig") == "sig"]
    named = [key for key in signing if key.get("kid") == header["kid"]] if "kid" in header else []
    if not named and "kid" not in header and len(signing) == 1:
        named = signing
    if not named:
        raise ProviderError(Sentence(NO_KEY))
    return jwt.PyJWK(dict(named[0]), algorithm=header["alg"])


_KNOWN: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.InvalidSignatureError, BAD_SIGNATURE),
    (jwt.ExpiredSignatureError, EXPIRED),
    (jwt.InvalidAudienceError, OTHER_AUDIENCE),
    (jwt.InvalidIssuerError, OTHER_ISSUER),
)


def _sentence(error: jwt.PyJWTError) -> Sentence:
    for kind, words in _KNOWN:
        if isinstance(error, kind):
            return Sentence(words)
    return Sentence(NOT_SOUND, why=str(error).rstrip("."))
