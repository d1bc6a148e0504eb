"""What belongs to a team is not there for anybody but its members and administrators."""

import json
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from dashboard import outbox
from dashboard.access import hidden_from, visible_deployments, visible_nodes
from dashboard.asgi import application
from dashboard.choices import Role
from dashboard.gateway.errors import ApiError
from dashboard.gateway.keys import authenticate
from dashboard.models import (
    Account,
    ApiKey,
    AuditEntry,
    Conversation,
    Team,
)
from dashboard.telemetry import subjects
from tests.dashboard.permissions import ABOUT, ADDRESSES, EVERYBODYS, KEYED
from tests.dashboard.teams_cast import Cast
from tests.dashboard.test_permissions import (
    METHODS,
    address,
    all_patterns,
    expected,
    let_in,
    names,
    unrendered,
)
from tests.sockets import Closed, SocketClient

__all__ = ["unrendered"]

pytestmark = pytest.mark.django_db(transaction=True)

HOST = (b"host", b"panel.example")
ORIGIN = (b"origin", b"http://panel.example")
SECRET = ("hush-model", "hush-box", "hush-words")
"""Names and words that nobody else is to read."""


@pytest.fixture
def cast() -> Cast:
    return Cast()


def path_of(cast: Cast, name: str) -> str:
    """The address about what the team has."""
    about = ABOUT[name]
    known: dict[str, dict[str, Any]] = {
        "deployment": {"name": "hush-model"},
        "node": {"name": "hush-box", "pk": cast.pks["source"]},
    }
    return address(name, **known.get(about, {"pk": cast.pks.get(about, 1)}))


def test_every_address_about_something_says_whose_it_is() -> None:
    taking = {
        one.name
        for one in all_patterns()
        if one.name and set(one.pattern.regex.groupindex) - {"format"}
    }
    missing = sorted(taking - ABOUT.keys() - EVERYBODYS)
    assert not missing, f"Say in tests/dashboard/permissions.py what {missing} are about."
    gone = sorted((ABOUT.keys() | EVERYBODYS) - set(names()))
    assert not gone, f"Remove these from tests/dashboard/permissions.py: {gone}."


def test_for_others_it_is_not_there(cast: Cast) -> None:
    for role, user in cast.people.items():
        client = cast.client(user)
        for name in ABOUT:
            for method, least in zip(METHODS, ADDRESSES[name], strict=True):
                if not isinstance(least, Role) or role.strength < least.strength:
                    continue
                if role == Role.ADMIN and method == "post":
                    continue
                status = getattr(client, method)(path_of(cast, name)).status_code
                if role != Role.ADMIN:
                    assert status == 404, f"{role} {method} {name}: {status}"
                elif name in ("deployment-detail", "node-detail", "incident", "firmware-update"):
                    assert status == 200, name


def undone(client: Client, path: str) -> bool:
    """Whether it may send there; what it changed is as before, for the next one to try."""
    with transaction.atomic():
        allowed = let_in(client, "post", path)
        transaction.set_rollback(True)
    return allowed


def test_its_members_may_what_their_roles_say(cast: Cast, unrendered: None) -> None:
    cast.team.members.set(cast.people.values())
    clients = {None: Client()} | {role: cast.client(user) for role, user in cast.people.items()}
    for name in ABOUT:
        path = path_of(cast, name)
        for method, least in zip(METHODS, ADDRESSES[name], strict=True):
            for role, client in clients.items():
                changes = method == "post" and least not in (None, Role.VIEWER)
                allowed = undone(client, path) if changes else let_in(client, method, path)
                assert allowed == expected(least, role), f"{role} {method} {path}: {allowed}"


def test_its_members_see_it(cast: Cast) -> None:
    client = cast.client(cast.member)
    for name, what in ABOUT.items():
        if ADDRESSES[name][0] == Role.VIEWER:
            status = client.get(path_of(cast, name)).status_code
            assert status == 200, f"{name} {what}: {status}"
    for page in ("overview", "deployments", "nodes", "logs", "alerts", "incidents"):
        assert "hush-" in client.get(address(page)).content.decode(), page


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_no_page_of_others_names_it(cast: Cast, role: Role) -> None:
    client, told = cast.client(cast.people[role]), []
    for name, rights in ADDRESSES.items():
        least = rights[0]
        if name in ABOUT or rights == KEYED or not isinstance(least, Role):
            continue
        if role.strength < least.strength or name.startswith(("account", "set_")):
            continue
        answer = client.get(address(name), QUERIES.get(name))
        text = answer.getvalue().decode(errors="replace")
        told += [f"{name}: {word}" for word in SECRET if word in text]
    assert not told


QUERIES: dict[str, dict[str, Any]] = {
    "telemetry-series": {"scope": "fleet"},
    "telemetry-csv": {"scope": "fleet"},
    "telemetry-markers": {"scope": "fleet", "from": 1, "to": 4_000_000_000},
}


def test_what_somebody_has_talked_about_stays_theirs_to_read(cast: Cast) -> None:
    outside = cast.people[Role.MEMBER]
    talk = Conversation.objects.create(user=outside, title="Old words", route="hush-model")
    text = cast.client(outside).get(f"/chat/{talk.pk}/").content.decode()
    assert "Old words" in text
    routes = cast.client(outside).get("/chat/routes/").content.decode()
    assert "hush-model" not in routes


def test_lists_and_sums_leave_it_out(cast: Cast) -> None:
    outside = cast.people[Role.OPERATOR]
    assert [row.name for row in visible_deployments(outside)] == ["smol"]
    assert [row.name for row in visible_nodes(outside)] == ["box-1"]
    assert visible_nodes(cast.member).count() == visible_nodes(cast.people[Role.ADMIN]).count() == 2
    hidden = hidden_from(outside)
    told = [one for scope in ("fleet", "everything") for one in subjects(scope, None, hidden)]
    assert told
    assert not [one for one in told if "hush" in f"{one.label} {one.node_name} {one.deployment}"]
    assert subjects("node", cast.node.pk, hidden) == []
    assert subjects("deployment", cast.deployment.pk, hidden) == []


def test_what_belongs_to_two_teams_is_seen_by_both(cast: Cast) -> None:
    other = Team.objects.create(name="loud")
    other.deployments.add(cast.deployment)
    outside = cast.people[Role.VIEWER]
    other.members.add(outside)
    assert not hidden_from(outside).deployments
    assert hidden_from(outside).nodes == {cast.node.pk}
    assert not hidden_from(cast.member)


def key_of(user: User) -> tuple[ApiKey, dict[str, str]]:
    key = ApiKey(user=user, name="tests", manages=True)
    secret = key.issue()
    key.save()
    return key, {"Authorization": f"Bearer {secret}"}


def test_the_gateway_knows_no_such_model_for_others(cast: Cast) -> None:
    _key, outside = key_of(cast.people[Role.MEMBER])
    cast.team.members.add(inside := cast.people[Role.OPERATOR])
    _key, member = key_of(inside)
    client = Client()
    listed = client.get("/v1/models", headers=outside).json()["data"]
    assert "hush-model" not in [one["id"] for one in listed]
    assert client.get("/v1/models/hush-model", headers=outside).status_code == 404
    asked = json.dumps({"model": "hush-model", "messages": [{"role": "user", "content": "Hi"}]})
    answer = client.post(
        "/v1/chat/completions", asked, content_type="application/json", headers=outside
    )
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    listed = client.get("/v1/models", headers=member).json()["data"]
    assert "hush-model" in [one["id"] for one in listed]
    assert client.get("/v1/models/hush-model", headers=member).status_code == 200


def test_the_api_knows_no_such_thing_for_others(cast: Cast) -> None:
    _key, outside = key_of(cast.people[Role.OPERATOR])
    for path in ("deployments/hush-model/settings", "nodes/hush-box/settings"):
        assert Client().get(f"/api/v1/{path}", headers=outside).status_code == 404
        answer = Client().patch(
            f"/api/v1/{path}", "{}", content_type="application/json", headers=outside
        )
        assert answer.status_code == 404
    assert Client().get("/api/v1/deployments/smol/settings", headers=outside).status_code == 200


def test_a_viewers_key_asks_nothing_and_whole_fleet_figures_are_for_who_sees_it_all(
    cast: Cast,
) -> None:
    _key, viewer = key_of(cast.people[Role.VIEWER])
    with pytest.raises(ApiError) as refused:
        authenticate(viewer["Authorization"])
    assert refused.value.status == 403
    _key, member = key_of(cast.people[Role.MEMBER])
    assert Client().get("/metrics", headers=member).status_code == 403
    _key, admin = key_of(cast.people[Role.ADMIN])
    assert Client().get("/metrics", headers=admin).status_code == 200


async def socket_of(user: User, path: str) -> SocketClient:
    client = Client()
    await database_sync_to_async(client.force_login)(user)
    name = settings.SESSION_COOKIE_NAME
    cookie = f"{name}={client.cookies[name].value}".encode()
    socket = SocketClient(application, path, [HOST, ORIGIN, (b"cookie", cookie)])
    assert await socket.connect()
    return socket


async def test_others_hear_nothing_of_it(nothing_live_left: None) -> None:
    cast = await database_sync_to_async(Cast)()
    outside = await socket_of(cast.people[Role.OPERATOR], "/ws/events")
    inside = await socket_of(cast.member, "/ws/events")
    await outside.send(f'{{"watch": {{"deployment": {cast.deployment.pk}}}}}')

    def happen() -> None:
        outbox.announce("deployment", cast.deployment.pk)
        outbox.announce("node", cast.node.pk)
        outbox.announce_log(cast.deployment.pk, "head", ["hush-words"])
        outbox.announce("model", 7)

    await database_sync_to_async(happen)()
    assert await outside.receive_json() == {"kind": "model", "id": 7}
    assert await inside.receive_json() == {"kind": "deployment", "id": cast.deployment.pk}
    await outside.disconnect()
    await inside.disconnect()


@pytest.mark.parametrize("path", ["/ws/events", "/ws/chat", "/ws/telemetry"])
async def test_who_is_switched_off_loses_open_sockets(
    path: str, monkeypatch: pytest.MonkeyPatch, nothing_live_left: None
) -> None:
    monkeypatch.setattr("monitoring.visitors.LOOK_SECONDS", 0.01)

    def somebody() -> User:
        user = User.objects.create_user("lin")
        Account.objects.create(user=user, role=Role.MEMBER)
        return user

    user = await database_sync_to_async(somebody)()
    socket = await socket_of(user, path)
    await database_sync_to_async(User.objects.filter(pk=user.pk).update)(is_active=False)
    with pytest.raises(Closed):
        await everything(socket)
    await socket.disconnect()


async def everything(socket: SocketClient) -> None:
    while True:
        await socket.receive()


def test_a_team_is_made_filled_and_removed(cast: Cast) -> None:
    client = cast.client(cast.people[Role.ADMIN])
    answer = client.post("/settings/teams/", {"name": "loud"})
    team = Team.objects.get(name="loud")
    assert answer.headers["Location"] == f"/settings/teams/{team.pk}/"
    assert client.post("/settings/teams/", {"name": "loud"}).status_code == 422
    chosen = {"members": [cast.member.pk], "deployments": [cast.open.pk]}
    client.post(f"/settings/teams/{team.pk}/", chosen)
    assert hidden_from(cast.people[Role.VIEWER]).deployments == {
        cast.open.pk,
        cast.deployment.pk,
    }
    entry = AuditEntry.objects.get(action="team.change")
    assert entry.after == {"members": ["inside"], "deployments": ["smol"], "nodes": []}
    assert "smol" in client.get("/settings/teams/").content.decode()
    client.post(f"/settings/teams/{team.pk}/remove/")
    assert hidden_from(cast.people[Role.VIEWER]).deployments == {cast.deployment.pk}
    assert AuditEntry.objects.filter(action="team.remove", target="loud").exists()
