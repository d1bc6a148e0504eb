"""A BMC that refuses, lies, stalls or dies: a sentence each, and nothing is leaked."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitoring.probes.outside import SourceError
from monitoring.probes.redfish import client
from monitoring.probes.redfish.client import Bmc as Client
from monitoring.probes.redfish.reader import RedfishReader
from monitoring.sources import RedfishSource
from tests.peers import bmc as peer
from tests.peers.bmc import PASSWORD, USER, Bmc, Certificate, make_certificate, serve

METRICS = f"{peer.CHASSIS}/EnvironmentMetrics"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def bmc(certificate: Certificate) -> Iterator[Bmc]:
    with serve(certificate, peer.modern()) as running:
        yield running


def source(url: str, certificate: Certificate, **fields: Any) -> RedfishSource:
    given = {"username": USER, "password": PASSWORD, "ca": certificate.pem, **fields}
    return RedfishSource(name="bmc", url=url, **given)


def refused(source: RedfishSource) -> SourceError:
    reader = RedfishReader(source)
    with pytest.raises(SourceError) as caught:
        reader.read()
    reader.close()
    return caught.value


@pytest.mark.parametrize("auth", ["session", "basic"])
def test_a_wrong_password_is_said_and_not_tried_again_soon(
    bmc: Bmc, certificate: Certificate, auth: str
) -> None:
    error = refused(source(bmc.url, certificate, password="guess", auth=auth))
    assert error.reason == client.REFUSED
    assert error.wait >= 300


def test_a_certificate_of_somebody_else_is_refused_before_a_word_is_said(
    bmc: Bmc, certificate: Certificate, tmp_path: Path
) -> None:
    other = make_certificate(tmp_path, "other")
    for wrong in (
        source(bmc.url, other),
        source(bmc.url, certificate, ca=""),  # What the system trusts.
        source(bmc.url, certificate, ca="", fingerprint=other.fingerprint),
    ):
        assert refused(wrong).reason == client.UNTRUSTED
    assert bmc.requests == []


def test_a_name_that_is_not_in_the_certificate_is_refused(
    bmc: Bmc, certificate: Certificate
) -> None:
    other_name = bmc.url.replace("127.0.0.1", "localhost")
    assert refused(source(other_name, certificate)).reason == client.UNTRUSTED
    assert bmc.requests == []


def test_an_authority_that_is_none_is_said(bmc: Bmc, certificate: Certificate) -> None:
    assert refused(source(bmc.url, certificate, ca="hello")).reason == client.NO_CA


@pytest.mark.parametrize(
    ("mishap", "reason"),
    [
        ("slow", client.SLOW),
        ("drip", client.SLOW),
        ("cut", client.BROKEN),
        ("garbage", client.STRANGE),
        ("redirect", client.REDIRECT),
        ("error", client.FAILED),
    ],
)
def test_what_goes_wrong_on_the_way_is_said(
    bmc: Bmc,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
    mishap: str,
    reason: str,
) -> None:
    monkeypatch.setattr(client, "REQUEST_SECONDS", 0.5)
    bmc.mishaps[METRICS] = mishap
    assert refused(source(bmc.url, certificate)).reason == reason


def test_a_redirect_leads_nowhere(bmc: Bmc, certificate: Certificate) -> None:
    bmc.mishaps[f"{peer.V1}/"] = "redirect"
    assert refused(source(bmc.url, certificate)).reason == client.REDIRECT


def test_nobody_there_is_said(certificate: Certificate) -> None:
    with serve(certificate, {}) as gone:
        url = gone.url
    assert refused(source(url, certificate)).reason == client.UNREACHABLE


def test_a_bmc_without_sessions_says_what_to_choose(bmc: Bmc, certificate: Certificate) -> None:
    bmc.opens_sessions = False
    assert refused(source(bmc.url, certificate)).reason == client.NO_SESSION


def test_a_session_that_was_ended_over_there_is_opened_anew(
    bmc: Bmc, certificate: Certificate
) -> None:
    reader = RedfishReader(source(bmc.url, certificate))
    reader.read()
    bmc.sessions.clear()
    with pytest.raises(SourceError, match="ended the session"):
        reader.read()
    assert reader.read()[0].value == 412.5
    reader.close()


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1",
        "https://127.0.0.1/redfish",
        "https://user:word@127.0.0.1",
        "https://127.0.0.1?x=1",
        "file:///etc/passwd",
        "https://",
        "https://127.0.0.1:port",
    ],
)
def test_an_address_that_is_more_than_a_host_is_not_asked(
    certificate: Certificate, address: str
) -> None:
    assert refused(source(address, certificate)).reason == client.NO_ADDRESS


def test_a_link_that_would_change_the_host_is_not_followed(
    bmc: Bmc, certificate: Certificate
) -> None:
    for target in ("@127.0.0.2/x", ".example.org/x", "https://127.0.0.2/x", 7, None):
        bmc.tree[peer.CHASSIS]["EnvironmentMetrics"] = {"@odata.id": target}
        reader = RedfishReader(source(bmc.url, certificate))
        reader.read()
        reader.close()
    assert not any("127.0.0.2" in path or "example" in path for path in bmc.paths())


def test_an_endless_answer_is_not_read_to_its_end(
    bmc: Bmc, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 1000)
    bmc.tree[METRICS] = {"x": "y" * 5000}
    assert refused(source(bmc.url, certificate)).reason == client.STRANGE


def test_the_password_is_in_no_log_and_no_representation(
    bmc: Bmc, certificate: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    asked = source(bmc.url, certificate, auth="basic")
    opened = Client(asked)
    bmc.mishaps[METRICS] = "garbage"
    with pytest.raises(SourceError):
        opened.get(METRICS)
    opened.close()
    assert PASSWORD not in repr(asked)
    assert "password='…'" in repr(asked)
    for word in (PASSWORD, PASSWORD[:5], "Basic "):
        assert word not in caplog.text
