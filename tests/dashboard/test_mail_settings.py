"""The mail server and the panel's address, read strictly from the environment."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard import env


def test_without_a_mail_server_there_is_no_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAIL", raising=False)
    assert env.mail("MAIL")["EMAIL_HOST"] == ""


@pytest.mark.parametrize(
    ("value", "port", "starttls", "tls"),
    [
        ("smtp://ada:p%40ss@mail.example", 587, True, False),
        ("smtps://ada:p%40ss@mail.example", 465, False, True),
        ("smtp+plain://ada:p%40ss@mail.example:2525", 2525, False, False),
    ],
)
def test_a_mail_server_is_one_address(
    monkeypatch: pytest.MonkeyPatch, value: str, port: int, starttls: bool, tls: bool
) -> None:
    monkeypatch.setenv("MAIL", value)
    assert env.mail("MAIL") == {
        "EMAIL_HOST": "mail.example",
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": "ada",
        "EMAIL_HOST_PASSWORD": "p@ss",
        "EMAIL_USE_TLS": starttls,
        "EMAIL_USE_SSL": tls,
    }


@pytest.mark.parametrize(
    "value", ["mail.example:587", "http://mail.example", "smtp://", "smtp://a:secret@b:port"]
)
def test_a_malformed_one_stops_the_start_without_repeating_the_password(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("MAIL", value)
    with pytest.raises(ImproperlyConfigured, match=r"^MAIL ") as raised:
        env.mail("MAIL")
    assert "secret" not in str(raised.value)


def test_the_panels_address_has_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", "https://tandem.example/")
    assert env.address("URL") == "https://tandem.example"
    for value in ("tandem.example", "https://tandem.example/panel", "ftp://tandem.example"):
        monkeypatch.setenv("URL", value)
        with pytest.raises(ImproperlyConfigured, match=r"^URL must be an address"):
            env.address("URL")
