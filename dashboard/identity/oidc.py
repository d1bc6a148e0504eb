"""allauth's OpenID Connect, with the token always checked in full and a nonce in every sign-in."""

import base64
import hashlib
from typing import Any

import msgspec
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from allauth.utils import build_absolute_uri
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_noop as _

from dashboard import secrets
from dashboard.identity import discovery, tokens
from dashboard.identity.discovery import Document
from dashboard.identity.errors import ProviderError
from dashboard.identity.provider import key_of
from dashboard.identity.roles import values_of
from dashboard.identity.web import Session
from dashboard.models import IdentityProvider
from dashboard.sentences import Sentence

NO_TOKEN = _("The provider sent no identity token. Is “openid” among the scopes?")
OTHER_PERSON = _("The provider speaks of two different people in one sign-in.")
KEPT_CLAIMS = ("sub", "email", "email_verified", "name", "preferred_username")


def app_of(provider: IdentityProvider) -> SocialApp:
    """As allauth wants it. It is never saved: its client secret stays sealed."""
    assert provider.secret is not None
    return SocialApp(
        provider=OpenIDConnectProvider.id,
        provider_id=key_of(provider.issuer),
        name=str(provider),
        client_id=provider.client_id,
        secret=secrets.reveal(provider.secret.name),
        settings={
            "server_url": provider.issuer,
            "oauth_pkce_enabled": True,
            "scope": provider.scopes.split(),
        },
    )


class OidcAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    def __init__(self, request: HttpRequest, provider: IdentityProvider) -> None:
        self.row = provider
        self._document: Document | None = None
        self._verifier = ""
        super().__init__(request, key_of(provider.issuer))

    def get_provider(self) -> "OidcProvider":
        return OidcProvider(self.request, app_of(self.row), self.row)

    @property
    def document(self) -> Document:
        """Raises ProviderError."""
        if self._document is None:
            self._document = discovery.fetch(self.row.issuer, self.row.ca)
        return self._document

    @property
    def openid_config(self) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.to_builtins(self.document)
        return document

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return str(build_absolute_uri(request, reverse("oidc-callback")))

    def get_access_token_data(
        self, request: HttpRequest, app: SocialApp, client: Any, pkce_code_verifier: str = ""
    ) -> dict[str, Any]:
        self._verifier = pkce_code_verifier
        data: dict[str, Any] = super().get_access_token_data(
            request, app, client, pkce_code_verifier=pkce_code_verifier
        )
        return data

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> SocialLogin:
        encoded = kwargs["response"].get("id_token")
        if not isinstance(encoded, str):
            raise ProviderError(Sentence(NO_TOKEN))
        claims = tokens.verify(
            encoded,
            discovery.fetch_keys(self.document, self.row.ca),
            issuer=self.row.issuer,
            client_id=app.client_id,
            nonce=nonce_of(self._verifier),
        )
        claims = self._with_userinfo(claims, token.token)
        return self.get_provider().sociallogin_from_response(request, claims)

    def _with_userinfo(self, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
        """Some providers tell e-mail and groups there alone."""
        wanted = {"email", *filter(None, [self.row.groups_claim])}
        if wanted <= claims.keys() or not self.document.userinfo_endpoint:
            return claims
        with Session(self.row.ca) as session:
            answer = session.get(
                self.document.userinfo_endpoint,
                headers={"Authorization": f"Bearer {access_token}"},
            )
        try:
            more = msgspec.json.decode(answer.content, type=dict[str, Any])
        except msgspec.MsgspecError:
            return claims  # Signed answers, and those that refuse, tell no more than the token.
        if answer.status_code != 200:
            return claims
        if more.get("sub") != claims["sub"]:
            raise ProviderError(Sentence(OTHER_PERSON))
        return {**more, **claims}


class OidcProvider(OpenIDConnectProvider):  # type: ignore[misc]
    def __init__(self, request: HttpRequest, app: SocialApp, row: IdentityProvider) -> None:
        self.row = row
        super().__init__(request, app)

    def get_oauth2_adapter(self, request: HttpRequest) -> OidcAdapter:
        return OidcAdapter(request, self.row)

    def get_pkce_params(self) -> dict[str, str]:
        """With the nonce: it follows from the verifier, which only this sign-in knows."""
        params: dict[str, str] = super().get_pkce_params()
        return {**params, "nonce": nonce_of(params["code_verifier"])}

    def get_login_url(self, request: HttpRequest, **kwargs: Any) -> str:
        return reverse("oidc-begin")

    def get_callback_url(self) -> str:
        return reverse("oidc-callback")

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """No more is kept than what signing in needs."""
        kept = {name: data[name] for name in KEPT_CLAIMS if name in data}
        if claim := self.row.groups_claim:
            kept[claim] = values_of(data, claim)
        return kept


def nonce_of(verifier: str) -> str:
    digest = hashlib.sha256(b"nonce:" + verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
