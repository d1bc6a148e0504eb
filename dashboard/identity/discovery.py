"""What a provider says of itself: its discovery document, judged before anything is asked there."""

from dataclasses import dataclass

import msgspec
import requests
from django.utils.translation import gettext_noop as _

from dashboard.identity.errors import ProviderError
from dashboard.identity.web import Session, check_address
from dashboard.sentences import Sentence

PATH = "/.well-known/openid-configuration"
ALGORITHMS = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)
"""Signatures with a key that only the provider has."""

NOT_FOUND = _("%(url)s answers %(status)s: this issuer has no discovery document.")
NOT_A_DOCUMENT = _("%(url)s does not answer with a discovery document: %(why)s.")
OTHER_ISSUER = _(
    "The provider calls itself %(named)s, not %(asked)s. Enter the issuer exactly as it does."
)
NO_CODE = _("The provider does not offer the code flow, which is the only one used here.")
NO_SIGNATURE = _("The provider signs with %(offered)s only; none of them is used here.")
NO_KEYS = _("%(url)s answers with no keys to check signatures with.")


class Document(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    response_types_supported: tuple[str, ...] = ("code",)
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    scopes_supported: tuple[str, ...] = ()
    claims_supported: tuple[str, ...] = ()


class KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, object]]


@dataclass(frozen=True)
class Found:
    """What the test of a provider shows."""

    document: Document
    keys: int


def fetch(issuer: str, ca: str) -> Document:
    """Raises ProviderError with what is wrong."""
    url = issuer.rstrip("/") + PATH
    with Session(ca) as session:
        answer = session.get(url)
    if answer.status_code != 200:
        raise ProviderError(Sentence(NOT_FOUND, url=url, status=answer.status_code))
    try:
        document = msgspec.json.decode(answer.content, type=Document)
    except msgspec.MsgspecError as error:
        raise ProviderError(Sentence(NOT_A_DOCUMENT, url=url, why=str(error))) from error
    _judge(document, issuer)
    return document


def fetch_keys(document: Document, ca: str) -> list[dict[str, object]]:
    """Raises ProviderError."""
    with Session(ca) as session:
        answer: requests.Response = session.get(document.jwks_uri)
    try:
        keys = msgspec.json.decode(answer.content, type=KeySet).keys
    except msgspec.MsgspecError:
        keys = []
    if answer.status_code != 200 or not keys:
        raise ProviderError(Sentence(NO_KEYS, url=document.jwks_uri))
    return keys


def test(issuer: str, ca: str) -> Found:
    """Ask it for everything that signing in will need. Raises ProviderError."""
    document = fetch(issuer, ca)
    return Found(document, len(fetch_keys(document, ca)))


def _judge(document: Document, issuer: str) -> None:
    if document.issuer != issuer:
        raise ProviderError(Sentence(OTHER_ISSUER, named=document.issuer, asked=issuer))
    for url in (document.authorization_endpoint, document.token_endpoint, document.jwks_uri):
        check_address(url)
    if "code" not in document.response_types_supported:
        raise ProviderError(Sentence(NO_CODE))
    if not ALGORITHMS.intersection(document.id_token_signing_alg_values_supported):
        offered = ", ".join(document.id_token_signing_alg_values_supported) or "–"
        raise ProviderError(Sentence(NO_SIGNATURE, offered=offered))
