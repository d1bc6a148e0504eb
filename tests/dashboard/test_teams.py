"""What belongs to a team is not there for anybody but its members and administrators."""

import json
from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from dashboard import outbox
from dashboard.access import hidden_from, visible_deployments, visible_nodes
from dashboard.asgi import application
from dashboard.choices import JobKind, Role
from dashboard.gateway.errors import ApiError
from dashboard.gateway.keys import authenticate
from dashboard.lifecycle.revisions import content_of
from dashboard.models import (
    Account,
    ApiKey,
    AuditEntry,
    Conversation,
    Deployment,
    Event,
    FirmwareImage,
    Job,
    LogLine,
    Node,
    NodeUpdate,
    Revision,
    Rollout,
    Team,
)
from dashboard.telemetry import subjects
from monitoring.models import (
    Alert,
    Bundle,
    Incident,
    LimitSpan,
    Maintenance,
    NodeSource,
    QuietRule,
    Rule,
    Silence,
)
from tests.dashboard.pages_cast import make_launch, make_model, make_node
from tests.dashboard.permissions import ABOUT, ADDRESSES, EVERYBODYS, KEYED
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


class Cast:
    """A team with one of everything, and people inside and outside of it."""

    def __init__(self) -> None:
        model = make_model()
        self.open = Deployment.objects.create(name="smol", model=model)
        make_node("box-1")
        self.deployment = Deployment.objects.create(name="hush-model", model=model, wanted=True)
        self.node = make_node("hush-box")
        self.replica = make_launch(self.deployment, self.node)
        self.team = Team.objects.create(name="quiet")
        self.team.deployments.add(self.deployment)
        self.team.nodes.add(self.node)
        self.people = {role: self._person(role) for role in Role}
        self.member = self._person(Role.VIEWER, "inside")
        self.team.members.add(self.member)
        self.pks = self._history()

    def client(self, user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    def _person(self, role: Role, name: str = "") -> User:
        user = User.objects.create_user(name or role.value)
        Account.objects.create(user=user, role=role)
        return user

    def _history(self) -> dict[str, int]:
        now = timezone.now()
        both: dict[str, Any] = {"node": self.node, "deployment": self.deployment}
        Event.objects.create(message="hush-words", **both)
        job = Job.objects.create(
            kind=JobKind.DEPLOY, deployment=self.deployment, generation=1, by="hush-words"
        )
        LogLine.objects.create(node=self.node, source="agent", text="hush-words")
        LogLine.objects.create(
            launch=self.replica.launch,
            node=Node.objects.get(name="box-1"),
            source="head",
            text="hush-words",
        )
        LogLine.objects.create(job=job, source="job", text="hush-words")
        LimitSpan.objects.create(node=self.node, since=now - timedelta(hours=1), why="hush-words")
        incident = Incident.objects.create(
            about="hush-model", title="hush-words", severity="critical", opened=now, **both
        )
        Alert.objects.create(
            rule_name="hush-words",
            kind="metric",
            topic="hush-words",
            severity="critical",
            status="firing",
            threshold=1.0,
            began=now,
            fired=now,
            seen=0.0,
            incident=incident,
            **both,
        )
        bundle = Bundle.objects.create(
            incident=incident, since=now, until=now, completes=now, content=b"x"
        )
        until = now + timedelta(hours=1)
        told: dict[str, Any] = {"starts": now, "until": until, "reason": "hush-words", "by": "ada"}
        silence = Silence.objects.create(**both, **told)
        Maintenance.objects.create(**both, **told)
        rule = Rule.objects.create(
            name="hush-words", kind="silent", severity="warning", threshold=1.0, clear=1.0, **both
        )
        quiet = QuietRule.objects.create(name="hush-words", enabled=False, power_watts=90, **both)
        self._revision_of_deployment()
        Revision.objects.create(node=self.node, number=1, why="hush-words")
        source = NodeSource.objects.create(
            node=self.node, kind="declared-power", name="plug", settings={"watts": 90}
        )
        rollout = self._rollout()
        update = rollout.updates.get()
        return {
            "incident": incident.pk,
            "bundle": bundle.pk,
            "silence": silence.pk,
            "rollout": rollout.pk,
            "update": update.pk,
            "rule": rule.pk,
            "quiet": quiet.pk,
            "source": source.pk,
        }

    def _revision_of_deployment(self) -> Revision:
        content = content_of(self.deployment)
        return Revision.objects.create(
            deployment=self.deployment, number=1, why="hush-words", content=content
        )

    def _rollout(self) -> Rollout:
        image = FirmwareImage.objects.create(
            name="bmc.bin", component="bmc", version="2", sha256="0" * 64, size=1, source="upload"
        )
        rollout = Rollout.objects.create(image=image, token="t", reason="hush-words", by="ada")
        NodeUpdate.objects.create(
            rollout=rollout, node=self.node, part_key="bmc", order=0, to_version="2"
        )
        return rollout


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
