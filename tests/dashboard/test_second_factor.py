"""A second factor is asked for after the password, and who needs one can do nothing without it."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.test import Client

from dashboard import panel_settings
from dashboard.identity import factors, guard
from dashboard.lifecycle.settings import change_panel
from dashboard.models import AuditEntry
from tests.dashboard.identity_cast import PASSWORD, SETUP, code_now, said, somebody

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _settings_are_read_anew() -> Iterator[None]:
    panel_settings.forget()
    yield
    panel_settings.forget()


def enrol(client: Client) -> tuple[str, list[str]]:
    """The app's secret, and the recovery codes, as the pages show them."""
    page = client.get("/account/second-factor/")
    secret = page.context["secret"].replace(" ", "")
    assert "<svg" in page.content.decode()
    answer = client.post("/account/second-factor/", {"code": code_now(secret)})
    codes = answer.context["codes"]
    assert len(codes) == 10
    return secret, codes


def test_it_is_set_up_asked_for_and_removed(client: Client) -> None:
    grace = somebody()
    client.force_login(grace)
    page = client.get("/account/second-factor/").context["secret"].replace(" ", "")
    assert page not in str([row.get_decoded() for row in Session.objects.all()]), "sealed there too"
    secret, codes = enrol(client)
    held = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in held
    assert codes[0] not in held
    entered = {"username": "grace", "password": PASSWORD, "next": "/nodes/"}
    door = Client()
    assert door.post("/sign-in/", entered)["Location"] == "/sign-in/code/"
    assert door.get("/nodes/").status_code == 302, "half a sign-in opens nothing"
    assert "This code is wrong" in door.post("/sign-in/code/", {"code": "000000"}).content.decode()
    assert door.post("/sign-in/code/", {"code": codes[0]})["Location"] == "/nodes/"
    assert door.get("/nodes/").status_code == 200
    again = Client()
    again.post("/sign-in/", entered)
    assert again.post("/sign-in/code/", {"code": codes[0]}).status_code == 422, "each counts once"
    assert again.post("/sign-in/code/", {"code": code_now(secret)}).status_code == 302
    assert client.post("/account/second-factor/remove/", {"code": "123"}).status_code == 422
    assert factors.has_factor(grace)
    client.post("/account/second-factor/remove/", {"code": codes[1]})
    assert not factors.has_factor(grace)
    assert not Authenticator.objects.exists()
    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {
        "account.factor-add",
        "account.factor-remove",
    }


def test_new_recovery_codes_replace_the_old(client: Client) -> None:
    client.force_login(somebody())
    _secret, codes = enrol(client)
    answer = client.post("/account/second-factor/codes/", {"code": codes[0]})
    assert not set(codes) & set(answer.context["codes"])


def test_the_first_code_must_be_right(client: Client) -> None:
    grace = somebody()
    client.force_login(grace)
    client.get("/account/second-factor/")
    answer = client.post("/account/second-factor/", {"code": "12345x"})
    assert answer.status_code == 422
    assert not factors.has_factor(grace)


def test_codes_cannot_be_guessed_for_long(client: Client) -> None:
    somebody()
    member = Client()
    member.force_login(User.objects.get())
    _secret, codes = enrol(member)
    client.post("/sign-in/", {"username": "grace", "password": PASSWORD})
    pages = [client.post("/sign-in/code/", {"code": f"00000{n}"}) for n in range(9)]
    assert "Too many failed attempts" in pages[-1].content.decode()
    page = client.post("/sign-in/code/", {"code": codes[0]})
    assert page.status_code == 422, "now not even a right one"


def test_passwords_cannot_be_guessed_for_long(client: Client) -> None:
    somebody()
    for _ in range(8):
        client.post("/sign-in/", {"username": "grace", "password": "wrong"})
    answer = client.post("/sign-in/", {"username": "grace", "password": PASSWORD})
    assert "Too many failed attempts" in answer.content.decode()
    other = Client(REMOTE_ADDR="10.9.9.9")
    answer = other.post("/sign-in/", {"username": "grace", "password": PASSWORD})
    assert answer.status_code == 200, "from elsewhere neither: the name is what is guessed"


@pytest.mark.parametrize(
    ("wanted", "flags"), [("operators", {"is_staff": True}), ("everybody", {})]
)
def test_who_needs_one_can_only_set_it_up(
    client: Client, wanted: str, flags: dict[str, Any]
) -> None:
    change_panel({"mfa_required": wanted}, SETUP)
    client.force_login(somebody(**flags))
    assert client.get("/nodes/")["Location"] == "/account/second-factor/?next=/nodes/"
    assert client.post("/keys/", {"name": "x"}).status_code == 403
    assert client.get("/nodes/", headers={"HX-Request": "true"})["HX-Redirect"]
    assert "Accounts like yours need" in said(client, "/account/second-factor/")
    enrol(client)
    assert client.get("/nodes/").status_code == 200


def test_members_need_none_where_operators_do(client: Client) -> None:
    change_panel({"mfa_required": "operators"}, SETUP)
    client.force_login(somebody())
    assert client.get("/nodes/").status_code == 200


def test_sockets_know_them_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    # The real one closes the connection, and with it the test's transaction.
    monkeypatch.setattr(guard, "database_sync_to_async", sync_to_async)
    change_panel({"mfa_required": "everybody"}, SETUP)
    grace, seen = somebody(), []

    async def application(scope: dict[str, Any], receive: object, send: object) -> None:
        seen.append(scope["user"])

    def connect() -> None:
        scope = {"user": grace, "session": SessionStore()}
        async_to_sync(guard.SocketGuard(application))(scope, None, None)

    connect()
    client = Client()
    client.force_login(grace)
    enrol(client)
    connect()
    assert [user.is_authenticated for user in seen] == [False, True]


def test_an_administrator_of_the_machine_can_take_it_away() -> None:
    grace = somebody()
    client = Client()
    client.force_login(grace)
    enrol(client)
    out = StringIO()
    call_command("sign_in", "--remove-factor", "grace", stdout=out)
    assert "no second factor any more" in out.getvalue()
    assert not factors.has_factor(grace)


def test_passwords_can_be_switched_on_again_from_the_machine() -> None:
    out = StringIO()
    change_panel({"sign_in_oidc": True, "sign_in_local": False}, SETUP)
    call_command("sign_in", "--local", "on", stdout=out)
    assert panel_settings.in_effect()["sign_in_local"] is True
    assert "Passwords: on" in out.getvalue()
