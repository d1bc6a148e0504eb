"""Where messages may go."""

import ipaddress
import socket

import pytest

from monitoring.alerts.notify.addresses import allowed, check_url, resolve
from monitoring.alerts.notify.errors import UndeliverableError


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "10.1.2.3", "192.168.1.9", "93.184.216.34", "::1", "fd12::1"]
)
def test_this_machine_and_private_networks_are_allowed(text: str) -> None:
    assert allowed(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254",
        "169.254.1.1",
        "100.100.100.200",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
    ],
)
def test_addresses_that_hand_out_credentials_are_not(text: str) -> None:
    assert not allowed(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://receiver.example/",
        "receiver.example/hook",
        "https:///hook",
        "https://receiver.example:port/",
        "https://user:password@receiver.example/",
        "https://receiver.example/a b",
        "https://receiver.example/\r\nX: y",
        "file:///etc/passwd",
    ],
)
def test_only_plain_web_addresses_are_taken(url: str) -> None:
    with pytest.raises(UndeliverableError):
        check_url(url)


def test_a_name_that_leads_to_a_forbidden_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(host: str, port: int, **_: object) -> list[object]:
        return [(0, 0, 0, "", (text, port)) for text in ("93.184.216.34", "169.254.169.254")]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with pytest.raises(UndeliverableError, match=r"169\.254\.169\.254"):
        resolve("rebinding.example", 80, 5.0)
