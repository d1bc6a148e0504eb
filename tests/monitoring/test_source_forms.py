"""Entering a source: what cannot work is said at its field, and no secret ever comes back."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.lifecycle import desired_for
from dashboard.models import Event, Node
from monitoring.models import NodeSource
from monitoring.sources import FanLawSource, PduSource, RedfishSource
from tests.monitoring.cast import make_node

pytestmark = pytest.mark.django_db

PASSWORD = "hunter22-and-more"
BMC = {
    "name": "bmc",
    "url": "https://10.0.0.9",
    "username": "monitor",
    "password": PASSWORD,
    "auth": "session",
    "seconds": "5",
    "trust": "pin",
    "fingerprint": "sha256 Fingerprint=" + ":".join(["AB"] * 32),
}
PDU = {
    "name": "rack",
    "profile": "apc",
    "host": "10.0.0.8",
    "port": "161",
    "outlets": "3, 4",
    "seconds": "2",
    "version": "2c",
    "community": "c0mmunity",
    "power_factor": "1",
    "energy_factor": "1",
}
V3 = PDU | {
    "version": "3",
    "community": "",
    "user": "meter",
    "auth_protocol": "sha256",
    "auth_key": "authentic-enough",
    "privacy_protocol": "aes128",
    "privacy_key": "private-enough",
}
METER = {
    "name": "desk",
    "position": "1 m",
    "protocol": "text",
    "device": "/dev/ttyUSB0",
    "baud": "9600",
    "grade": "class 1",
}
FANS = {"name": "fans", "position": "1 m", "exponent": "50", "band_db": "5"}


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ada"))
    return client


@pytest.fixture
def node() -> Node:
    return make_node()


def enter(client: Client, kind: str, fields: dict[str, str]) -> Any:
    return client.post(f"/nodes/box-1/sources/new/{kind}/", fields)


def refused_fields(answer: Any) -> set[str]:
    assert answer.status_code == 422
    return set(answer.context["form"].errors)


def test_what_is_entered_reaches_the_agent_and_is_sealed(operator: Client, node: Node) -> None:
    assert enter(operator, "redfish", BMC).status_code == 302
    row = NodeSource.objects.get()
    assert PASSWORD not in str(row.settings) + row.sealed
    desired = desired_for(node.pk)
    assert desired.generation == 1
    assert desired.sources == [
        RedfishSource(
            name="bmc",
            url="https://10.0.0.9",
            username="monitor",
            password=PASSWORD,
            fingerprint="ab" * 32,
        )
    ]


def test_a_secret_is_on_no_page_and_in_no_event(operator: Client, node: Node) -> None:
    enter(operator, "redfish", BMC)
    enter(operator, "pdu", V3)
    for row in NodeSource.objects.all():
        text = operator.get(f"/nodes/box-1/sources/{row.pk}/").content.decode()
        for secret in (PASSWORD, "authentic-enough", "private-enough"):
            assert secret not in text
    assert PASSWORD not in operator.get("/nodes/box-1/sources/").content.decode()
    assert not any(PASSWORD in str(e.params) + e.message for e in Event.objects.all())
    answer = enter(operator, "redfish", BMC | {"url": "nonsense"})
    assert PASSWORD not in answer.content.decode()


def test_an_empty_secret_keeps_the_stored_one(operator: Client, node: Node) -> None:
    enter(operator, "redfish", BMC)
    row = NodeSource.objects.get()
    path = f"/nodes/box-1/sources/{row.pk}/"
    assert operator.post(path, BMC | {"password": "", "seconds": "9"}).status_code == 302
    (source,) = desired_for(node.pk).sources
    assert isinstance(source, RedfishSource)
    assert (source.password, source.seconds) == (PASSWORD, 9)


def test_another_address_does_not_get_the_stored_secret(operator: Client, node: Node) -> None:
    enter(operator, "redfish", BMC)
    row = NodeSource.objects.get()
    path = f"/nodes/box-1/sources/{row.pk}/"
    elsewhere = BMC | {"password": "", "url": "https://10.6.6.6"}
    assert refused_fields(operator.post(path, elsewhere)) == {"password"}
    assert operator.post(path, elsewhere | {"password": "new"}).status_code == 302


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "http://10.0.0.9"}, "url"),
        ({"url": "https://10.0.0.9/redfish/v1"}, "url"),
        ({"url": "https://u:p@10.0.0.9"}, "url"),
        ({"url": "https://10.0.0.9:99999"}, "url"),
        ({"url": "https://10.0.0.9?x"}, "url"),
        ({"url": "10.0.0.9"}, "url"),
        ({"password": ""}, "password"),
        ({"username": ""}, "username"),
        ({"fingerprint": "AB:CD"}, "fingerprint"),
        ({"trust": "ca", "ca": "hello"}, "ca"),
        ({"trust": "nobody"}, "trust"),
        ({"seconds": "0"}, "seconds"),
        ({"seconds": "nan"}, "seconds"),
        ({"name": ""}, "name"),
        ({"name": "x" * 41}, "name"),
        ({"name": "a\x07b"}, "name"),
    ],
)
def test_a_bmc_that_cannot_work_is_refused_at_its_field(
    operator: Client, node: Node, change: dict[str, str], field: str
) -> None:
    assert refused_fields(enter(operator, "redfish", BMC | change)) == {field}
    assert not NodeSource.objects.exists()


def test_an_address_is_stored_as_it_will_be_used(operator: Client, node: Node) -> None:
    enter(operator, "redfish", BMC | {"url": " https://[fd00::9]:8443/ "})
    assert NodeSource.objects.get().settings["url"] == "https://[fd00::9]:8443"


def test_a_name_that_is_taken_on_this_node_is_refused(operator: Client, node: Node) -> None:
    enter(operator, "redfish", BMC)
    assert refused_fields(enter(operator, "pdu", PDU | {"name": "bmc"})) == {"name"}


def test_a_pdu_of_version_2c(operator: Client, node: Node) -> None:
    assert enter(operator, "pdu", PDU).status_code == 302
    assert desired_for(node.pk).sources == [
        PduSource(
            name="rack", host="10.0.0.8", profile="apc", outlets=(3, 4), community="c0mmunity"
        )
    ]


def test_a_pdu_of_version_3_and_back(operator: Client, node: Node) -> None:
    assert enter(operator, "pdu", V3).status_code == 302
    (source,) = desired_for(node.pk).sources
    assert isinstance(source, PduSource)
    assert (source.user, source.auth_protocol, source.community) == ("meter", "sha256", "")
    assert (source.auth_key, source.privacy_key) == ("authentic-enough", "private-enough")
    row = NodeSource.objects.get()
    shown = operator.get(f"/nodes/box-1/sources/{row.pk}/").context["form"]
    assert (shown["version"].value(), shown["outlets"].value()) == ("3", "3, 4")
    assert operator.post(f"/nodes/box-1/sources/{row.pk}/", PDU).status_code == 302
    (source,) = desired_for(node.pk).sources
    assert isinstance(source, PduSource)
    assert (source.user, source.auth_key, source.community) == ("", "", "c0mmunity")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (PDU | {"host": "http://10.0.0.8"}, "host"),
        (PDU | {"port": "0"}, "port"),
        (PDU | {"outlets": "three"}, "outlets"),
        (PDU | {"outlets": "0"}, "outlets"),
        (PDU | {"community": ""}, "community"),
        (PDU | {"profile": "custom"}, "power_oid"),
        (PDU | {"profile": "custom", "power_oid": "sysDescr"}, "power_oid"),
        (PDU | {"power_factor": "-1"}, "power_factor"),
        (V3 | {"user": ""}, "user"),
        (V3 | {"auth_key": "short"}, "auth_key"),
        (V3 | {"privacy_key": ""}, "privacy_key"),
        (V3 | {"auth_protocol": ""}, "auth_protocol"),
    ],
)
def test_a_pdu_that_cannot_work_is_refused_at_its_field(
    operator: Client, node: Node, fields: dict[str, str], field: str
) -> None:
    assert field in refused_fields(enter(operator, "pdu", fields))


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"device": "/etc/passwd"}, {"device"}),
        ({"device": "spy://x:1?file=/tmp/x"}, {"device"}),
        ({"device": "/dev/../etc/passwd"}, {"device"}),
        ({"device": "/dev/ttyUSB0", "protocol": "hid-gm1356"}, {"device"}),
        ({"baud": "17"}, {"baud"}),
        ({"position": ""}, {"position"}),
    ],
)
def test_a_meter_that_cannot_work_is_refused_at_its_field(
    operator: Client, node: Node, change: dict[str, str], fields: set[str]
) -> None:
    assert refused_fields(enter(operator, "meter", METER | change)) == fields


def test_every_kind_can_be_entered_and_opened_again(operator: Client, node: Node) -> None:
    entries = {
        "redfish": BMC,
        "pdu": PDU,
        "meter": METER,
        "microphone": {"name": "mic", "position": "desk"},
        "fan-law": FANS,
        "declared-noise": {"name": "sheet", "position": "1 m", "level_dba": "38.5"},
        "declared-power": {"name": "rated", "watts": "240"},
    }
    for kind, fields in entries.items():
        assert operator.get(f"/nodes/box-1/sources/new/{kind}/").status_code == 200
        assert enter(operator, kind, fields).status_code == 302, kind
    assert len(desired_for(node.pk).sources) == len(entries)
    for row in NodeSource.objects.all():
        answer = operator.get(f"/nodes/box-1/sources/{row.pk}/")
        assert f'value="{row.name}"' in answer.content.decode()
    assert "mic" in operator.get("/nodes/box-1/sources/").content.decode()


def test_an_unknown_kind_is_no_page(operator: Client, node: Node) -> None:
    assert operator.get("/nodes/box-1/sources/new/crystal-ball/").status_code == 404


def test_a_level_and_its_speed_belong_together(operator: Client, node: Node) -> None:
    assert refused_fields(enter(operator, "fan-law", FANS | {"rpm": "4000"})) == {"level_dba"}
    assert refused_fields(enter(operator, "fan-law", FANS | {"level_dba": "40"})) == {"rpm"}
    whole = FANS | {"rpm": "4000", "level_dba": "40"}
    assert enter(operator, "fan-law", whole).status_code == 302
    assert desired_for(node.pk).sources == [FanLawSource(name="fans", level_dba=40, rpm=4000)]


def test_a_source_that_cannot_be_unsealed_is_left_out(
    operator: Client, node: Node, settings: Any
) -> None:
    enter(operator, "redfish", BMC)
    enter(operator, "meter", METER)
    settings.SECRET_KEY = "another key altogether"
    assert [source.name for source in desired_for(node.pk).sources] == ["desk"]
