"""Who changed what, from where: written down, and never changed afterwards."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from dashboard import audit
from dashboard.audit import Actor
from dashboard.forms.energy import PriceListForm
from dashboard.models import AuditEntry
from monitoring.models import PriceList, Rule
from tests.dashboard.pages_cast import make_node, operator, viewer

__all__ = ["operator", "viewer"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry() -> AuditEntry:
    audit.note(Actor("ada", 1, "form", "10.0.0.7"), "node.evacuate", "box-1", after={"on": True})
    return AuditEntry.objects.get()


@transaction.atomic
def as_everybody(statement: str) -> None:
    """The tests' own connection may empty tables; nobody else's may."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL tandem.audit_purge = 'off'")
        cursor.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dashboard_auditentry SET actor = 'somebody else'",
        "DELETE FROM dashboard_auditentry",
        "TRUNCATE dashboard_auditentry",
    ],
)
def test_the_database_refuses_to_change_it(entry: AuditEntry, statement: str) -> None:
    with pytest.raises(DatabaseError, match="only ever added to"):
        as_everybody(statement)
    assert AuditEntry.objects.get().actor == "ada"


def test_old_lines_go_when_their_time_is_over_and_that_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long_ago = timezone.now() - timedelta(days=40)
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: long_ago)
        audit.note(Actor("ada"), "node.evacuate", "box-1")
    assert audit.forget(365) == 0
    assert audit.forget(1) == 1
    left = AuditEntry.objects.get()
    assert left.action == "audit.purge"
    assert left.after is not None
    assert left.after["removed"] == 1


def test_a_change_without_words_of_its_own_leaves_a_line_too(operator: Client) -> None:
    operator.post("/models/demo/experts/")
    found = AuditEntry.objects.get(target="/models/demo/experts/")
    assert (found.actor, found.via, found.address) == ("ada", "form", "127.0.0.1")
    assert found.action == "page.experts-demo"


def test_what_was_entered_is_told_before_and_after(operator: Client) -> None:
    make_node("box-1")
    operator.post("/nodes/box-1/close/")
    closed = AuditEntry.objects.get(action="node.close")
    assert (closed.target, closed.before) == ("box-1", {"open": True})
    rule = Rule.objects.filter(enabled=True, kind="metric").first()
    assert rule is not None
    operator.post(f"/monitor/alerts/rules/{rule.pk}/off/")
    assert AuditEntry.objects.get(action="rule.off").before == {"on": True}
    kept = PriceListForm(instance=PriceList.current()).initial
    entered = {name: value for name, value in kept.items() if value is not None}
    operator.post("/monitor/energy/prices/", {**entered, "currency": "CHF"})
    entry = AuditEntry.objects.get(action="tariff.prices")
    assert entry.before is not None
    assert entry.after is not None
    assert entry.after["currency"] == "CHF" != entry.before["currency"]
    operator.post("/keys/", {"name": "report"})
    made = AuditEntry.objects.get(action="key.create")
    assert made.target == "report"
    assert "sk-tdm" not in str(AuditEntry.objects.values_list())


def test_a_change_with_words_of_its_own_leaves_one_line(operator: Client) -> None:
    make_node("box-1")
    operator.post("/nodes/box-1/evacuate/", {"why": "New fans."})
    entries = AuditEntry.objects.exclude(action__startswith="account.")
    assert [one.action for one in entries] == ["node.evacuate"]


def test_what_was_refused_or_only_looked_at_leaves_none(viewer: Client) -> None:
    make_node("box-1")
    viewer.get("/nodes/box-1/")
    assert viewer.post("/nodes/box-1/close/").status_code == 403
    assert not AuditEntry.objects.exclude(action__startswith="account.").exists()


def test_signing_in_and_failing_to_leave_lines() -> None:
    User.objects.create_user("lin", password="correct horse")
    client = Client()
    assert not client.login(username="lin", password="wrong")
    assert client.login(username="lin", password="correct horse")
    client.logout()
    actions = [one.action for one in AuditEntry.objects.order_by("pk")]
    assert actions == ["account.sign_in_failed", "account.sign_in", "account.sign_out"]
    assert "wrong" not in str(list(AuditEntry.objects.values()))
