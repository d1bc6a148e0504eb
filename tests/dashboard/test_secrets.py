"""A secret is entered once, used by name, and is nowhere to be read."""

import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from dashboard import panel_settings
from dashboard.celery import app
from dashboard.lifecycle.settings import change_panel
from dashboard.models import AuditEntry, Secret
from dashboard.secrets import SecretError, reveal
from engine import logs
from tests.dashboard.identity_cast import SETUP

pytestmark = pytest.mark.django_db
VALUE = "smtps-password-Zq7xK2"
FORM = {"name": "mail-server", "kind": "password", "value": VALUE}


@pytest.fixture(autouse=True)
def _settings_are_read_anew() -> Iterator[None]:
    panel_settings.forget()
    yield
    panel_settings.forget()


def test_it_is_added_replaced_and_removed_without_being_shown(admin_client: Client) -> None:
    assert admin_client.get("/settings/secrets/new/").status_code == 200
    assert admin_client.post("/settings/secrets/new/", FORM).status_code == 302
    page = admin_client.get("/settings/secrets/").content.decode()
    assert "mail-server" in page
    assert "…xK2" in page
    assert VALUE not in page
    assert reveal("mail-server") == VALUE
    edit = admin_client.get("/settings/secrets/mail-server/").content.decode()
    assert VALUE not in edit
    admin_client.post("/settings/secrets/mail-server/", {**FORM, "value": "another-one"})
    assert reveal("mail-server") == "another-one"
    assert Secret.objects.get().hint == "", "a short one spares none of its characters"
    admin_client.post("/settings/secrets/mail-server/remove/")
    with pytest.raises(SecretError, match="no secret mail-server"):
        reveal("mail-server")
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert [one for one in actions if one.startswith("secret.")] == [
        "secret.add",
        "secret.replace",
        "secret.remove",
    ]


def test_one_that_is_in_use_stays_and_its_user_is_named(admin_client: Client) -> None:
    admin_client.post("/settings/secrets/new/", FORM)
    change_panel({"smtp_url": "mail-server"}, SETUP)
    answer = admin_client.post("/settings/secrets/mail-server/remove/", follow=True)
    assert "is used by the panel’s settings" in answer.content.decode()
    assert Secret.objects.exists()


@pytest.mark.parametrize("name", ["Has Spaces", "UPPER", "../up", "", "x" * 64])
def test_a_name_that_settings_could_not_refer_to_is_refused(
    admin_client: Client, name: str
) -> None:
    answer = admin_client.post("/settings/secrets/new/", {**FORM, "name": name})
    assert answer.status_code == 422
    assert VALUE not in answer.content.decode(), "not even back to the form"


def test_only_administrators_see_the_page(client: Client, django_user_model: type) -> None:
    user = django_user_model.objects.create_user("op", is_staff=True)  # type: ignore[attr-defined]
    client.force_login(user)
    assert client.get("/settings/secrets/").status_code == 403


def test_it_is_in_no_row_no_log_no_task_and_no_export(
    admin_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    sent: list[object] = []
    monkeypatch.setattr(app, "send_task", lambda *parts, **more: sent.append((parts, more)))
    with django_capture_on_commit_callbacks(execute=True):
        admin_client.post("/settings/secrets/new/", FORM)
        change_panel({"smtp_url": "mail-server"}, SETUP)
    reveal("mail-server")
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.TextFormatter("%(message)s"))
    record = logging.LogRecord("x", logging.ERROR, "", 0, f"refused {VALUE}", None, None)
    handler.emit(record)
    assert VALUE not in stream.getvalue()
    dumped = StringIO()
    call_command("dumpdata", stdout=dumped)
    assert "mail-server" in dumped.getvalue()
    assert VALUE not in dumped.getvalue()
    assert VALUE not in str(sent)
    for model in apps.get_models():
        assert VALUE not in str(list(model._default_manager.values())), model


def test_its_use_is_noted_but_not_every_second(
    admin_client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    admin_client.post("/settings/secrets/new/", FORM)
    reveal("mail-server")
    assert Secret.objects.get().last_used
    with django_assert_num_queries(1):
        reveal("mail-server")
