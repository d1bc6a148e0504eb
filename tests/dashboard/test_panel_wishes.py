"""The panel's own settings are in effect: what is kept how long, who takes mail, which language."""

from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from dashboard import lifecycle, panel_settings
from dashboard.lifecycle.settings import change_panel
from dashboard.models import LogLine, Node
from dashboard.secrets import keep
from monitoring import wishes
from monitoring.alerts.notify.deliver import Address, try_out
from monitoring.alerts.notify.message import link
from monitoring.models import Channel, Delivery
from monitoring.storage.levels import MINUTE, SECOND
from monitoring.vault import seal
from tests.dashboard.identity_cast import SETUP
from tests.peers.mail_server import mail_server

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _settings_are_read_anew() -> Iterator[None]:
    panel_settings.forget()
    yield
    panel_settings.forget()


def test_telemetry_is_kept_as_long_as_the_settings_say() -> None:
    assert timedelta(days=2) == SECOND.keep
    change_panel({"keep_seconds_days": 5, "keep_minutes_days": 90}, SETUP)
    assert timedelta(days=5) == SECOND.keep
    assert timedelta(days=90) == MINUTE.keep


def test_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    change_panel({"keep_seconds_days": 5}, SETUP)
    monkeypatch.setenv("TANDEM_KEEP_SECONDS_DAYS", "3")
    panel_settings.forget()
    assert timedelta(days=3) == SECOND.keep


def test_log_lines_are_kept_as_long_as_the_settings_say() -> None:
    node = Node.objects.create(name="box-a", address="10.0.0.5")
    for days in (1, 3):
        at = timezone.now() - timedelta(days=days)
        LogLine.objects.create(node=node, source="agent", text="x", at=at)
    LogLine.objects.filter(pk=LogLine.objects.earliest("pk").pk).update(
        at=timezone.now() - timedelta(days=3)
    )
    LogLine.objects.filter(pk=LogLine.objects.latest("pk").pk).update(at=timezone.now())
    lifecycle.prune_log()
    assert LogLine.objects.count() == 2
    change_panel({"keep_log_days": 2}, SETUP)
    lifecycle.prune_log()
    assert LogLine.objects.count() == 1


def tried(settings: Settings) -> Delivery:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    sealed = seal(msgspec.to_builtins(Address(recipients=["ada@example.org"])))
    return try_out(Channel.objects.create(name="mail", kind="email", sealed=sealed))


def test_mail_goes_through_the_server_whose_address_is_a_secret(settings: Settings) -> None:
    with mail_server() as server:
        keep("mail-server", "password", f"smtp+plain://127.0.0.1:{server.port}", SETUP)
        change_panel({"smtp_url": "mail-server", "mail_from": "fleet@example.org"}, SETUP)
        delivery = tried(settings)
    assert delivery.status == "sent", delivery.answer_text
    [mail] = server.taken
    assert mail.sender == "fleet@example.org"


@pytest.mark.parametrize("held", ["correct-horse-battery-staple", "http://mail.example", ""])
def test_a_secret_that_is_no_address_is_said_without_being_repeated(
    settings: Settings, held: str
) -> None:
    keep("mail-server", "password", held, SETUP)
    change_panel({"smtp_url": "mail-server"}, SETUP)
    delivery = tried(settings)
    assert "The secret mail-server does not hold the address" in delivery.answer_text
    assert not held or held not in delivery.answer_text


def test_messages_lead_to_the_address_of_the_settings() -> None:
    assert link("/x") == ""
    change_panel({"public_url": "https://fleet.example/"}, SETUP)
    assert wishes.current().public_url() == "https://fleet.example"
    assert link("/x") == "https://fleet.example/x"


@pytest.mark.parametrize(
    ("asks", "language"), [("", "zh-hans"), ("fr-FR,fr;q=0.9", "zh-hans"), ("fr,en;q=0.8", "en")]
)
def test_whoever_asks_for_no_language_of_ours_reads_the_panels_first(
    client: Client, asks: str, language: str
) -> None:
    change_panel({"language": "zh-hans"}, SETUP)
    headers = {"Accept": "text/html", "Accept-Language": asks}
    page = client.get("/sign-in/", headers=headers)
    assert page["Content-Language"] == language
    client.cookies["tandem_language"] = "en"
    assert client.get("/sign-in/", headers=headers)["Content-Language"] == "en"
