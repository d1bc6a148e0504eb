"""Administrators give accounts and roles; nobody is locked out, and who is switched off is out."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.access import may, role_of
from dashboard.choices import Role
from dashboard.models import Account, ApiKey, AuditEntry, Team
from tests.dashboard.pages_cast import body, operator, viewer

__all__ = ["operator", "viewer"]

pytestmark = pytest.mark.django_db

PEOPLE = "/settings/people/"


def person(name: str, role: Role) -> User:
    user = User.objects.create_user(name, password="correct horse")
    Account.objects.create(user=user, role=role)
    return user


def test_each_role_may_what_the_weaker_ones_may() -> None:
    for role in Role:
        user = person(role.value, role)
        assert [may(user, other) for other in Role] == [
            other.strength <= role.strength for other in Role
        ]
        user.is_active = False
        assert role_of(user) is None


def test_a_new_account_gets_a_password_that_is_shown_once(operator: Client) -> None:
    text = operator.post(PEOPLE, {"name": "lin", "role": "operator"}).content.decode()
    user = User.objects.get(username="lin")
    password = text.partition('id="first-password">')[2].partition("<")[0]
    assert user.check_password(password)
    assert role_of(user) == Role.OPERATOR
    assert password not in body(operator, PEOPLE)
    assert AuditEntry.objects.filter(action="account.create", target="lin").exists()


def test_a_name_is_given_once(operator: Client) -> None:
    answer = operator.post(PEOPLE, {"name": "Ada", "role": "viewer"})
    assert answer.status_code == 422
    assert "There is an account Ada already" in answer.content.decode()


def test_a_role_is_changed_and_written_down(operator: Client) -> None:
    lin = person("lin", Role.VIEWER)
    operator.post(f"{PEOPLE}{lin.pk}/role/", {"role": "admin"})
    lin.refresh_from_db()
    assert role_of(User.objects.get(pk=lin.pk)) == Role.ADMIN
    entry = AuditEntry.objects.get(action="account.role")
    assert (entry.before, entry.after) == ({"role": "viewer"}, {"role": "admin"})


def test_nobody_changes_their_own_account_nor_the_last_administrator(operator: Client) -> None:
    ada = User.objects.get(username="ada")
    answer = operator.post(f"{PEOPLE}{ada.pk}/role/", {"role": "viewer"}, follow=True)
    assert "Nobody changes their own account" in answer.content.decode()
    answer = operator.post(f"{PEOPLE}{ada.pk}/off/", follow=True)
    assert role_of(User.objects.get(pk=ada.pk)) == Role.ADMIN


def test_who_is_switched_off_is_out_at_once(operator: Client) -> None:
    lin = person("lin", Role.MEMBER)
    key = ApiKey(user=lin, name="ci")
    key.issue()
    key.save()
    theirs = Client()
    theirs.force_login(lin)
    assert theirs.get("/chat/").status_code == 200
    operator.post(f"{PEOPLE}{lin.pk}/off/")
    assert theirs.get("/chat/").status_code == 302
    key.refresh_from_db()
    assert key.revoked is not None


def test_a_viewer_looks_and_does_not_talk() -> None:
    client = Client()
    client.force_login(person("vi", Role.VIEWER))
    assert client.get("/deployments/").status_code == 200
    assert client.get("/chat/").status_code == 403
    assert client.get("/api-keys/").status_code in (403, 404)
    assert "Playground" not in body(client, "/deployments/")


def test_only_administrators_see_people_and_audit(viewer: Client) -> None:
    for page in (PEOPLE, "/settings/audit/", "/settings/audit.csv"):
        assert viewer.get(page).status_code == 403


def streamed(client: Client, path: str) -> str:
    answer: Any = client.get(path)
    return b"".join(answer.streaming_content).decode()


def test_the_audit_trail_is_searched_and_exported(operator: Client) -> None:
    lin = person("lin", Role.VIEWER)
    operator.post(f"{PEOPLE}{lin.pk}/role/", {"role": "member"})
    text = body(operator, "/settings/audit/?q=lin&action=account.role")
    assert "<del>viewer</del>" in text
    assert "No line fits" in body(operator, "/settings/audit/?q=nobody-of-that-name")
    lines = streamed(operator, "/settings/audit.csv?q=lin")
    assert lines.splitlines()[0].startswith("at,actor,via")
    assert "account.role" in lines
    lines = streamed(operator, "/settings/audit.jsonl")
    assert '"after": {"role": "member"}' in lines


def test_the_administration_leaves_an_administrator_and_a_line(operator: Client) -> None:
    ada, lin = User.objects.get(username="ada"), person("lin", Role.VIEWER)
    assert operator.post(f"/admin/auth/user/{ada.pk}/delete/", {"post": "yes"}).status_code == 403
    picked = {"action": "delete_selected", "_selected_action": [ada.pk], "post": "yes"}
    operator.post("/admin/auth/user/", picked)
    change = f"/admin/auth/user/{ada.pk}/change/"
    operator.post(change, {"username": "ada", "first_name": "Ada", "is_active": ""})
    ada.refresh_from_db()
    assert (ada.is_active, ada.first_name) == (True, "Ada")
    entry = AuditEntry.objects.get(action="admin.user.change")
    assert (entry.via, entry.after) == ("admin", {"first_name": "Ada"})
    operator.post(f"/admin/auth/user/{lin.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(username="lin").exists()
    assert AuditEntry.objects.get(action="admin.user.delete").target == "lin"


def test_people_are_listed_with_their_teams(operator: Client) -> None:
    team = Team.objects.create(name="research")
    team.members.add(person("lin", Role.VIEWER))
    assert f'href="/settings/teams/{team.pk}/">research' in body(operator, PEOPLE)


@pytest.mark.parametrize(
    ("role", "steps"), [(Role.VIEWER, 0), (Role.MEMBER, 2), (Role.OPERATOR, 5), (Role.ADMIN, 5)]
)
def test_an_empty_panel_offers_everybody_what_they_may_do(role: Role, steps: int) -> None:
    client = Client()
    client.force_login(person("lin", role))
    text = body(client, "/")
    assert text.count('<li class="hint') == steps
    for label in ("Deploy a model", "Add a node"):
        assert (f">{label}</a>" in text) == (steps == 5)
