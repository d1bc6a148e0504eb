"""Every page, address and socket lets in exactly those whom the table names."""

from collections.abc import Iterator
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.template.backends.django import Template
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from dashboard.asgi import application
from dashboard.audit import PANEL
from dashboard.choices import Role
from dashboard.consumers.events import UNREADABLE
from dashboard.identity.grants import set_role
from dashboard.models import ApiKey, Deployment
from dashboard.sockets import websocket_urlpatterns
from tests.dashboard.pages_cast import make_model, make_node
from tests.dashboard.permissions import (
    ADDRESSES,
    BY_ITSELF,
    BY_KEY,
    KEYED,
    OPEN,
    SOCKETS,
    UNNAMED,
    Least,
)
from tests.sockets import Closed, SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

ARGUMENTS: dict[str, Any] = {
    "name": "smol",
    "pk": 1,
    "number": 1,
    "image": 1,
    "message_pk": 1,
    "kind": "redfish",
    "table": "boxes",
    "stream": "nothing",
    "token": "nothing",
    "what": "silence",
    "form": "csv",
    "catalogue": "engine",
}
ACTIONS = {
    "person-act": "role",
    "node-act": "close",
    "node-service": "evacuate",
    "revision-act": "apply",
    "deployment-act": "restart",
    "alert-rule-act": "on",
    "alert-channel-act": "on",
    "firmware-update-act": "cancel",
    "firmware-node-act": "release",
}
METHODS = ("get", "post")
SAY = "Say in tests/dashboard/permissions.py"
ENDS_SESSION = ("account-sessions", "account-password")
CHANGING = ("patch", "post")
OTHER_METHODS = ("put", "patch", "delete")


def patterns(found: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    """All but Django's own administration, which goes by staff status and model permissions."""
    for one in found:
        if isinstance(one, URLPattern):
            yield one
        elif one.namespace != "admin":
            yield from patterns(one.url_patterns)


def all_patterns() -> list[URLPattern]:
    return list(patterns(get_resolver().url_patterns))


def names() -> list[str]:
    return sorted({one.name for one in all_patterns() if one.name})


def address(name: str, /, **about: Any) -> str:
    wanted = next(one for one in all_patterns() if one.name == name)
    known = {**ARGUMENTS, "action": ACTIONS.get(name, "")}
    if name.startswith(("node", "source", "firmware-node", "firmware-read", "firmware-offer")):
        known["name"] = "box-1"
    known |= about
    arguments = {key: known[key] for key in wanted.pattern.regex.groupindex}
    return reverse(name, kwargs=arguments)


@pytest.fixture
def clients() -> dict[Role | None, Client]:
    Deployment.objects.create(name="smol", model=make_model())
    make_node("box-1")
    return make_people()


def let_in(client: Client, method: str, path: str) -> bool:
    """False too where the address knows no such method."""
    answer = getattr(client, method)(path)
    assert answer.status_code < 500, f"{method} {path}: {answer.status_code}"
    to_sign_in = answer.status_code == 302 and answer.headers["Location"].startswith("/sign-in/")
    return not to_sign_in and answer.status_code not in (401, 403, 405)


def test_every_address_stands_in_the_table() -> None:
    missing = [name for name in names() if name not in ADDRESSES]
    assert not missing, f"{SAY} (ADDRESSES) who may use {missing}."
    keyed = [name for name, rights in ADDRESSES.items() if rights == KEYED]
    missing = [name for name in keyed if name not in BY_KEY.keys() | BY_ITSELF]
    missing += [name for name in names() if name.startswith("manage-") and name not in BY_KEY]
    assert not missing, f"{SAY} (BY_KEY) whose keys may use {missing}."
    gone = [name for name in (*ADDRESSES, *BY_KEY, *BY_ITSELF) if name not in names()]
    assert not gone, f"Remove these from tests/dashboard/permissions.py: {gone}."
    unnamed = {str(one.pattern) for one in all_patterns() if not one.name}
    assert unnamed == UNNAMED.keys(), "Give addresses a name, so that the table can tell of them."


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is let in shows without what they are shown; that takes most of the time."""
    monkeypatch.setattr(Template, "render", lambda *_args, **_more: "")


def test_exactly_those_may_who_are_named(
    clients: dict[Role | None, Client], unrendered: None
) -> None:
    users = {role: User.objects.get(username=role.value) for role in Role}
    for name, rights in ADDRESSES.items():
        if rights == KEYED:
            continue
        path = address(name)
        for method, least in zip(METHODS, rights, strict=True):
            for role in (None, *tried(least)):
                allowed = let_in(clients[role], method, path)
                assert allowed == expected(least, role), f"{role} {method} {path}: {allowed}"
                if role is not None and name in ENDS_SESSION:
                    clients[role].force_login(users[role])


def test_no_other_method_lets_in_whom_these_do_not(
    clients: dict[Role | None, Client], unrendered: None
) -> None:
    for name, rights in ADDRESSES.items():
        if rights == KEYED or OPEN in rights:
            continue
        path = address(name)
        weaker = [role for role in Role if role.strength < rights_of(rights).strength]
        for role in (None, *weaker[-1:]):
            for method in OTHER_METHODS:
                assert not let_in(clients[role], method, path), f"{role} {method} {path}"


def test_keys_may_what_their_owners_may(clients: dict[Role | None, Client]) -> None:
    keys = {role: make_key(role) for role in Role}
    for name, rights in BY_KEY.items():
        for methods, least in zip((("get",), CHANGING), rights, strict=True):
            for role in tried(least):
                allowed = any(answers(name, method, keys[role]) for method in methods)
                assert allowed == expected(least, role), f"{role} {methods} {name}: {allowed}"


def tried(least: Least) -> list[Role]:
    """What knows no such method refuses the strongest, too."""
    return list(Role) if least is not None else [Role.ADMIN]


def test_another_sites_page_changes_nothing_with_a_session(
    clients: dict[Role | None, Client],
) -> None:
    forged = Client(enforce_csrf_checks=True)
    forged.force_login(User.objects.get(username=Role.ADMIN.value))
    for name in BY_KEY:
        for method in CHANGING:
            assert not let_in(forged, method, address(name)), name


def make_key(role: Role) -> dict[str, str]:
    key = ApiKey(user=User.objects.get(username=role.value), name="tests", manages=True)
    secret = key.issue()
    key.save()
    return {"Authorization": f"Bearer {secret}"}


def answers(name: str, method: str, headers: dict[str, str]) -> bool:
    answer = Client().generic(
        method.upper(), address(name), "{}", content_type="application/json", headers=headers
    )
    return answer.status_code not in (401, 403, 405)


def rights_of(rights: tuple[Least, Least]) -> Role:
    """What it takes to change something there; to look, where nothing is changed."""
    known = [one for one in rights if isinstance(one, Role)]
    return known[-1] if known else Role.ADMIN


def test_administration_is_for_administrators(clients: dict[Role | None, Client]) -> None:
    pages = [admin_url(row) for row in admin.site._registry]
    for role, client in clients.items():
        for path in ("/admin/", *pages):
            status = client.get(path).status_code
            assert (status == 200) == (role == Role.ADMIN), f"{role} {path}: {status}"


def admin_url(row: type[Model]) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_changelist")


async def test_sockets_stay_open_for_those_who_are_named(nothing_live_left: None) -> None:
    routes = {str(one.pattern) for one in websocket_urlpatterns} - {""}
    assert routes == SOCKETS.keys(), f"{SAY} (SOCKETS) whom each takes."
    people = await database_sync_to_async(make_people)()
    for path, least in SOCKETS.items():
        for role, client in people.items():
            allowed = await stays_open(client, f"/{path}")
            assert allowed == expected(least, role), f"{role} {path}: {allowed}"


def make_people() -> dict[Role | None, Client]:
    found: dict[Role | None, Client] = {None: Client()}
    for role in Role:
        user = User.objects.create_user(role.value)
        set_role(user, role, PANEL)
        found[role] = Client()
        found[role].force_login(user)
    return found


async def stays_open(client: Client, path: str) -> bool:
    cookies = "; ".join(f"{name}={one.value}" for name, one in client.cookies.items())
    headers = [
        (b"host", b"panel.example"),
        (b"origin", b"http://panel.example"),
        (b"cookie", cookies.encode()),
    ]
    socket = SocketClient(application, path, headers)
    if not await socket.connect():
        return False
    # All of them answer to what they do not understand, or close.
    await socket.send("nonsense")
    try:
        await socket.receive()
    except Closed as closed:
        allowed = closed.code == UNREADABLE
    else:
        allowed = True
    await socket.disconnect()
    return allowed


def expected(least: Least, role: Role | None) -> bool:
    if isinstance(least, Role):
        return role is not None and role.strength >= least.strength
    return least == OPEN
