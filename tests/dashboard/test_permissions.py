"""Every page, address and socket lets in exactly those whom the table names."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from dashboard.choices import Role
from dashboard.models import Account, Deployment
from tests.dashboard.pages_cast import make_model, make_node
from tests.dashboard.permissions import ADDRESSES, KEYED, OPEN, Least

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


def patterns(found: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    """All but Django's own administration, which goes by staff status and model permissions."""
    for one in found:
        if isinstance(one, URLPattern):
            yield one
        elif one.namespace != "admin":
            yield from patterns(one.url_patterns)


def names() -> list[str]:
    return sorted({one.name for one in patterns(get_resolver().url_patterns) if one.name})


def address(name: str) -> str:
    wanted = next(one for one in patterns(get_resolver().url_patterns) if one.name == name)
    known = {**ARGUMENTS, "action": ACTIONS.get(name, "")}
    if name.startswith(("node", "source", "firmware-node", "firmware-read", "firmware-offer")):
        known["name"] = "box-1"
    arguments = {key: known[key] for key in wanted.pattern.regex.groupindex}
    return reverse(name, kwargs=arguments)


@pytest.fixture
def clients() -> dict[Role | None, Client]:
    Deployment.objects.create(name="smol", model=make_model())
    make_node("box-1")
    found: dict[Role | None, Client] = {None: Client()}
    for role in Role:
        user = User.objects.create_user(role.value, password="correct horse")
        Account.objects.create(user=user, role=role)
        found[role] = Client()
        found[role].force_login(user)
    return found


def let_in(client: Client, method: str, path: str) -> bool:
    """False too where the address knows no such method."""
    answer = getattr(client, method)(path)
    assert answer.status_code < 500, f"{method} {path}: {answer.status_code}"
    to_sign_in = answer.status_code == 302 and answer.headers["Location"].startswith("/sign-in/")
    return not to_sign_in and answer.status_code not in (401, 403, 405)


def test_every_address_stands_in_the_table() -> None:
    missing = [name for name in names() if name not in ADDRESSES]
    assert not missing, f"Say in tests/dashboard/permissions.py who may use {missing}."
    gone = [name for name in ADDRESSES if name not in names()]
    assert not gone, f"Remove these from tests/dashboard/permissions.py: {gone}."


def test_exactly_those_may_who_are_named(clients: dict[Role | None, Client]) -> None:
    users = {role: User.objects.get(username=role.value) for role in Role}
    for name, rights in ADDRESSES.items():
        if rights == KEYED:
            continue
        path = address(name)
        for method, least in zip(METHODS, rights, strict=True):
            for role, client in clients.items():
                if role is not None:
                    client.force_login(users[role])  # Some addresses end the session.
                allowed = let_in(client, method, path)
                assert allowed == expected(least, role), f"{role} {method} {path}: {allowed}"


def expected(least: Least, role: Role | None) -> bool:
    if isinstance(least, Role):
        return role is not None and role.strength >= least.strength
    return least == OPEN
