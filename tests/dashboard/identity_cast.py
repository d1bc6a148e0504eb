"""People, a provider and the way through it, for tests of signing in."""

import time
from typing import Any
from urllib.parse import urlsplit

import requests
from allauth.mfa.totp.internal import auth
from django.contrib.auth.models import User
from django.test import Client

from dashboard.audit import Actor
from dashboard.lifecycle.settings import change_panel
from dashboard.models import IdentityProvider
from dashboard.secrets import keep
from tests.peers.oidc import CLIENT_ID, CLIENT_SECRET, OidcProvider

SETUP = Actor("setup")
PASSWORD = "a-good-password-1"


def set_up(peer: OidcProvider, **more: Any) -> IdentityProvider:
    """The provider as an administrator would enter it, switched on."""
    secret = keep("oidc-client", "other", CLIENT_SECRET, SETUP)
    values = {"label": "Keycloak", "issuer": peer.issuer, "client_id": CLIENT_ID, "secret": secret}
    row = IdentityProvider.objects.create(**{**values, **more})
    change_panel({"sign_in_oidc": True}, SETUP)
    return row


def go_through(
    client: Client, next_page: str = "", start: Any = None, trust: str | bool = True
) -> Any:
    """As a browser does: to the provider, and back with what it says."""
    answer = start or client.get("/sign-in/oidc/", {"next": next_page} if next_page else {})
    assert answer.status_code == 302, answer
    if urlsplit(answer["Location"]).path.startswith("/sign-in"):
        return answer
    back = requests.get(answer["Location"], allow_redirects=False, timeout=5, verify=trust)
    url = urlsplit(back.headers["Location"])
    return client.get(f"{url.path}?{url.query}")


def somebody(name: str = "grace", **flags: Any) -> User:
    return User.objects.create_user(name, password=PASSWORD, **flags)


def code_now(secret: str) -> str:
    counter = int(time.time()) // 30
    return str(auth.format_hotp_value(auth.hotp_value(secret, counter)))


def said(client: Client, path: str = "/sign-in/") -> str:
    return client.get(path).content.decode()
