"""People sign in through an OpenID Connect provider, and nobody whom it does not vouch for."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.test import Client

from dashboard import panel_settings
from dashboard.choices import Role
from dashboard.identity import factors
from dashboard.identity import provider as providers
from dashboard.lifecycle.settings import change_panel
from dashboard.models import Account, IdentityProvider
from dashboard.secrets import keep
from tests.dashboard.identity_cast import PASSWORD, SETUP, go_through, said, set_up, somebody
from tests.peers.bmc import make_certificate
from tests.peers.oidc import CLIENT_SECRET, OidcProvider, running

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def server() -> Iterator[OidcProvider]:
    with running(OidcProvider()) as provider:
        yield provider


@pytest.fixture
def peer(server: OidcProvider) -> Iterator[OidcProvider]:
    fresh = OidcProvider()
    for name in ("person", "in_userinfo", "document", "grants", "tokens", "asked"):
        setattr(server, name, getattr(fresh, name))
    server.spoil, server.forged, server.algorithm, server.moved = dict, False, "RS256", ""
    panel_settings.forget()
    yield server
    panel_settings.forget()


def test_whoever_it_vouches_for_is_let_in_and_led_on(client: Client, peer: OidcProvider) -> None:
    set_up(peer)
    peer.person = {"sub": "u-1", "preferred_username": "ada", "email": "ada@example.com"}
    peer.in_userinfo = {"name": "Ada Lovelace"}
    assert "Sign in with Keycloak" in said(client)
    answer = go_through(client, "/nodes/")
    assert answer["Location"] == "/nodes/"
    user = User.objects.get()
    assert (user.username, user.email) == ("ada", "ada@example.com")
    assert not user.has_usable_password()
    assert Account.objects.get(user=user).role == Role.VIEWER
    assert client.get("/account/").status_code == 200
    assert not SocialToken.objects.exists(), "no token of the provider is kept"
    assert not SocialApp.objects.exists(), "nor the client secret in the clear"


def test_the_second_time_it_is_the_same_person(client: Client, peer: OidcProvider) -> None:
    set_up(peer)
    go_through(client)
    peer.person = {"sub": "u-1", "preferred_username": "renamed"}
    go_through(Client())
    assert User.objects.count() == 1


def test_a_name_that_is_taken_opens_nobody_elses_account(
    client: Client, peer: OidcProvider
) -> None:
    set_up(peer)
    somebody("ada", is_superuser=True, email="ada@example.com")
    peer.person = {
        "sub": "u-9",
        "preferred_username": "ada",
        "email": "ada@example.com",
        "email_verified": True,
    }
    go_through(client)
    user = SocialAccount.objects.get().user
    assert user.username != "ada"
    assert not user.is_superuser


def other(name: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda claims: {**claims, name: value}


def without(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda claims: {key: value for key, value in claims.items() if key != name}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (other("nonce", "of-somebody-else"), "belongs to another sign-in"),
        (without("nonce"), "belongs to another sign-in"),
        (other("aud", "another-app"), "meant for another application"),
        (other("aud", ["tandem-panel", "another-app"]), "meant for another application"),
        (other("azp", "another-app"), "meant for another application"),
        (other("iss", "https://elsewhere.example"), "comes from another issuer"),
        (other("exp", int(time.time()) - 3600), "has expired"),
        (other("iat", int(time.time()) + 3600), "is not sound"),
        (without("exp"), "is not sound"),
        (without("sub"), "is not sound"),
    ],
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(
    client: Client, peer: OidcProvider, spoil: Any, words: str
) -> None:
    set_up(peer)
    peer.spoil = spoil
    refused: list[str] = []

    def heard(credentials: dict[str, str], **_: object) -> None:
        refused.append(credentials["username"])

    user_login_failed.connect(heard)
    try:
        assert go_through(client)["Location"] == "/sign-in/"
    finally:
        user_login_failed.disconnect(heard)
    assert words in said(client)
    assert not User.objects.exists()
    assert refused, "and it is told to whoever keeps the trail"


@pytest.mark.parametrize(
    ("what", "value"), [("forged", True), ("algorithm", "HS256"), ("algorithm", "none")]
)
def test_a_signature_that_is_not_the_providers_is_refused(
    client: Client, peer: OidcProvider, what: str, value: Any
) -> None:
    set_up(peer)
    setattr(peer, what, value)
    go_through(client)
    assert "signature of the identity token is wrong" in said(client)
    assert not User.objects.exists()


def test_an_answer_that_nobody_asked_for_is_refused(client: Client, peer: OidcProvider) -> None:
    set_up(peer)
    answer = client.get("/sign-in/oidc/callback/", {"code": "x", "state": "made-up"})
    assert answer["Location"] == "/sign-in/"
    assert "did not come to an end" in said(client)


def test_a_code_counts_once_and_in_one_browser(client: Client, peer: OidcProvider) -> None:
    set_up(peer)
    start = client.get("/sign-in/oidc/")
    query = parse_qs(urlsplit(start["Location"]).query)
    assert query["code_challenge_method"] == ["S256"]
    assert go_through(Client(), start=start)["Location"] == "/sign-in/"
    assert not User.objects.exists()


def test_userinfo_of_somebody_else_is_refused(client: Client, peer: OidcProvider) -> None:
    set_up(peer)
    peer.in_userinfo = {"sub": "u-2", "email": "boss@example.com"}
    go_through(client)
    assert "two different people" in said(client)


def test_groups_give_roles_at_every_sign_in_anew(client: Client, peer: OidcProvider) -> None:
    set_up(
        peer,
        groups_claim="realm_access.roles",
        groups={"operator": ["ops"], "admin": ["infra"]},
        default_role="",
    )
    peer.person = {"sub": "u-1", "realm_access": {"roles": ["ops", "infra"]}}
    go_through(client)
    user = User.objects.get()
    assert Account.objects.get(user=user).role == Role.ADMIN
    assert user.is_superuser
    peer.person = {"sub": "u-1", "realm_access": {"roles": ["ops"]}}
    go_through(Client())
    user.refresh_from_db()
    assert Account.objects.get(user=user).role == Role.OPERATOR
    assert not user.is_superuser
    peer.person = {"sub": "u-1", "realm_access": {"roles": ["guests"]}}
    stranger = Client()
    go_through(stranger)
    assert "None of your groups gives a role here" in said(stranger)


@pytest.mark.parametrize(
    ("claims", "welcome"),
    [
        ({"email": "ada@example.com", "email_verified": True}, True),
        ({"email": "ada@EXAMPLE.com", "email_verified": True}, True),
        ({"email": "ada@example.com", "email_verified": False}, False),
        ({"email": "ada@example.com.evil.org", "email_verified": True}, False),
        ({"email": "ada@example.org", "email_verified": True}, False),
        ({}, False),
    ],
)
def test_only_addresses_of_allowed_domains_come_in(
    client: Client, peer: OidcProvider, claims: dict[str, Any], welcome: bool
) -> None:
    set_up(peer, domains=["example.com"])
    peer.person = {"sub": "u-1", **claims}
    go_through(client)
    assert User.objects.exists() == welcome
    if not welcome:
        assert "Only people with an e-mail address at example.com" in said(client)


def test_without_new_accounts_only_those_who_have_one_come_in(
    client: Client, peer: OidcProvider
) -> None:
    set_up(peer, create=False)
    go_through(client)
    assert "There is no account for you yet" in said(client)
    grace = somebody()
    member = Client()
    member.force_login(grace)
    page = member.post("/account/provider/")
    assert "http-equiv" in page.content.decode()
    go_through(member, start=_Redirect(page.context["url"]))
    assert SocialAccount.objects.get().user == grace
    assert go_through(Client())["Location"] == "/"


class _Redirect(dict[str, str]):
    status_code = 302

    def __init__(self, url: str) -> None:
        super().__init__(Location=url)


@pytest.mark.parametrize(("own", "target"), [(True, "/"), (False, "/sign-in/code/")])
def test_a_second_factor_is_asked_for_unless_the_provider_has_asked(
    client: Client, peer: OidcProvider, own: bool, target: str
) -> None:
    set_up(peer, own_factor=own)
    change_panel({"mfa_required": "everybody"}, SETUP)
    go_through(client)
    assert (client.get("/nodes/").status_code == 200) == own
    factors.confirm(client.get("/account/").wsgi_request, User.objects.get(), "A" * 32, SETUP)
    assert go_through(Client())["Location"] == target


def test_a_switched_off_account_stays_out(client: Client, peer: OidcProvider) -> None:
    set_up(peer)
    go_through(client)
    User.objects.update(is_active=False)
    late = Client()
    assert go_through(late)["Location"] == "/sign-in/"
    assert "switched off" in said(late)


def test_the_same_subject_of_another_issuer_is_somebody_else(
    client: Client, peer: OidcProvider
) -> None:
    set_up(peer)
    go_through(client)
    with running(OidcProvider()) as second:
        IdentityProvider.objects.update(issuer=second.issuer)
        go_through(Client())
    assert User.objects.count() == 2


def test_a_provider_that_is_gone_is_said(client: Client, peer: OidcProvider) -> None:
    with running(OidcProvider()) as gone:
        set_up(gone)
    assert client.get("/sign-in/oidc/")["Location"] == "/sign-in/"
    assert "cannot be reached" in said(client)


def test_a_client_secret_that_is_wrong_lets_nobody_in(client: Client, peer: OidcProvider) -> None:
    set_up(peer)
    keep("oidc-client", "other", "something-else-entirely", SETUP)
    go_through(client)
    assert not User.objects.exists()


def test_a_redirect_of_the_discovery_document_is_not_followed(
    client: Client, peer: OidcProvider
) -> None:
    set_up(peer)
    peer.moved = "http://169.254.169.254/latest/meta-data/"
    client.get("/sign-in/oidc/")
    assert "answers 302 and sends elsewhere" in said(client)


def test_passwords_go_only_once_an_administrator_came_through_the_provider(
    client: Client, peer: OidcProvider
) -> None:
    set_up(peer, groups_claim="groups", groups={"admin": ["infra"]})
    somebody()
    change_panel({"sign_in_local": False}, SETUP)
    entered = {"username": "grace", "password": PASSWORD}
    assert Client().post("/sign-in/", entered).status_code == 302, "nobody is locked out"
    peer.person = {"sub": "u-1", "groups": ["infra"]}
    go_through(client)
    answer = Client().post("/sign-in/", entered)
    assert answer.status_code == 200
    assert "Passwords are switched off here" in answer.content.decode()
    assert not Client().login(**entered)
    User.objects.filter(socialaccount__isnull=False).update(is_active=False)
    assert Client().post("/sign-in/", entered).status_code == 302, "the last one has gone"


@pytest.mark.parametrize("what", ["groups", "client secret", "settings"])
def test_a_provider_that_lets_no_administrator_in_any_more_opens_passwords_again(
    client: Client, peer: OidcProvider, admin_client: Client, what: str
) -> None:
    row = set_up(peer, groups_claim="groups", groups={"admin": ["infra"]}, default_role="")
    peer.person = {"sub": "u-1", "groups": ["infra"]}
    change_panel({"sign_in_local": False}, SETUP)
    go_through(client)
    assert not providers.local_open()
    if what == "groups":
        peer.person = {"sub": "u-1", "groups": []}
        go_through(Client())
    elif what == "client secret":
        keep("oidc-client", "other", CLIENT_SECRET + "-2", SETUP)
    else:
        form = {"issuer": row.issuer, "client_id": "other", "secret": str(row.secret_id)}
        more = {"scopes": "openid", "sign_in_oidc": "on", "mfa_required": "nobody"}
        assert admin_client.post("/settings/sign-in/", {**form, **more}).status_code == 302
    assert providers.local_open()


def test_tls_is_verified_against_an_authority_that_was_entered(
    client: Client, peer: OidcProvider, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    with running(OidcProvider(), certificate.path) as secure:
        row = set_up(secure)
        client.get("/sign-in/oidc/")
        assert "is not trusted" in said(client)
        row.ca = certificate.pem
        row.save()
        assert go_through(client, trust=str(certificate.path))["Location"] == "/"


def test_the_settings_page_tests_the_provider_and_says_what_is_wrong(
    admin_client: Client, peer: OidcProvider
) -> None:
    row = set_up(peer)
    form = {
        "label": "Keycloak",
        "issuer": peer.issuer,
        "client_id": "tandem-panel",
        "secret": str(row.secret_id),
        "scopes": "openid email",
        "default_role": "viewer",
        "sign_in_oidc": "on",
        "sign_in_local": "on",
        "mfa_required": "nobody",
        "groups_admin": "infra, ops",
        "groups_claim": "groups",
    }
    page = admin_client.post("/settings/sign-in/", {**form, "test": "1"})
    assert "The provider answers as it should" in page.content.decode()
    peer.document = {"issuer": "http://127.0.0.1:1"}
    page = admin_client.post("/settings/sign-in/", {**form, "test": "1"})
    assert "The provider calls itself" in page.content.decode()
    page = admin_client.post("/settings/sign-in/", {**form, "issuer": "http://id.example"})
    assert "is not encrypted" in page.content.decode()
    assert admin_client.post("/settings/sign-in/", form).status_code == 302
    row.refresh_from_db()
    assert row.groups == {"admin": ["infra", "ops"]}
    shown = admin_client.get("/settings/sign-in/").content.decode()
    assert CLIENT_SECRET not in shown
