"""The page of a node's sources: what each tells now, or why it tells nothing."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.choices import NodeStatus
from dashboard.models import Event, Node
from monitoring.metrics import ENERGY, FAN_SPEED, MICROPHONE_LEVEL, NOISE, NOISE_BAND, POWER
from monitoring.models import Layout, NodeSource, Reading
from monitoring.packing import Packer
from monitoring.probes.outside import absent, age_of
from monitoring.samples import Sample, measured
from monitoring.sources import (
    DeclaredPower,
    FanLawSource,
    MeterSource,
    MicrophoneSource,
    PduSource,
    RedfishSource,
    Source,
)
from tests.monitoring.cast import make_node

pytestmark = pytest.mark.django_db

BMC = RedfishSource(name="bmc", url="https://10.0.0.9", username="u", password="hunter22")
RACK = PduSource(name="rack", host="10.0.0.8", profile="apc", community="c0mmunity")
DESK = MeterSource(name="desk", device="/dev/ttyUSB0")


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ada"))
    return client


@pytest.fixture
def node() -> Node:
    node = make_node()
    Node.objects.filter(pk=node.pk).update(status=NodeStatus.ONLINE)
    return Node.objects.get()


def add(node: Node, *sources: Source) -> list[NodeSource]:
    rows = []
    for source in sources:
        row = NodeSource(node=node)
        row.take(source)
        row.save()
        rows.append(row)
    return rows


def tell(node: Node, samples: list[Sample], age: float = 1.0) -> None:
    """As if the agent had, that many seconds ago."""
    at = timezone.now() - timedelta(seconds=age)
    for number, (described, numbers) in enumerate(Packer().pack(samples)):
        layout = Layout.objects.create(
            node=node, subject=described.subject, digest=f"d{number}", fields=described.fields
        )
        Reading.objects.create(layout=layout, at=at, numbers=list(numbers))


def body(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def page(client: Client) -> str:
    return body(client, "/nodes/box-1/sources/")


def test_without_sources_one_is_told_what_is_not_known(operator: Client, node: Node) -> None:
    assert "its noise and what it draws at the plug are not known" in page(operator)


def test_the_node_page_leads_to_them(operator: Client, node: Node) -> None:
    assert 'href="/nodes/box-1/sources/"' in body(operator, "/nodes/box-1/")


def test_values_stand_with_their_kind_and_age(operator: Client, node: Node) -> None:
    add(node, RACK, DESK)
    tell(
        node,
        [
            measured(POWER, 412.34, source=RACK.origin, scope="wall"),
            measured(ENERGY, 3.6e6 * 12.5, source=RACK.origin, scope="wall"),
            age_of(RACK, 2.0),
            measured(NOISE, 41.26, source=DESK.origin, scope="room", label="1 m"),
            measured(
                NOISE_BAND, 1.4, source=DESK.origin, scope="room", label="1 m", kind="declared"
            ),
            age_of(DESK, 0.4),
        ],
    )
    text = page(operator)
    for shown in ("412.3 W", "12.500 kWh", "read 2 s ago", "41.3 dB(A) ± 1.4", "measured"):
        assert shown in text


def test_a_source_that_fails_says_why(operator: Client, node: Node) -> None:
    add(node, BMC)
    reason = "The BMC refused the user name or the password."
    tell(node, [*absent(BMC, reason), age_of(BMC, None, reason)])
    text = page(operator)
    assert reason in text
    assert "No reading" in text
    assert ">0" not in text.split('id="sources"')[1].split("</section>")[0]


def test_old_news_are_no_news(operator: Client, node: Node) -> None:
    add(node, RACK)
    tell(
        node,
        [measured(POWER, 412.0, source=RACK.origin, scope="wall"), age_of(RACK, 0.0)],
        age=60,
    )
    text = page(operator)
    assert "412" not in text
    assert "Its first reading is on its way." in text


def test_an_agent_that_is_away_is_the_reason(operator: Client, node: Node) -> None:
    Node.objects.update(status=NodeStatus.OFFLINE)
    add(node, RACK)
    assert "agent is not connected" in page(operator)


def test_what_is_declared_gives_way_and_says_so(operator: Client, node: Node) -> None:
    declared = DeclaredPower(name="rated", watts=240)
    add(node, declared)
    tell(node, [measured(POWER, 100.0, source="host: hwmon", scope="host")])
    assert "Something better is read instead." in page(operator)


def test_a_secret_of_another_key_is_asked_for_again(
    operator: Client, node: Node, settings: Any
) -> None:
    (row,) = add(node, BMC)
    settings.SECRET_KEY = "another key altogether"
    operator.force_login(User.objects.get())  # Sessions are signed with it too.
    assert "enter it again" in page(operator)
    answer = operator.post(f"/nodes/box-1/sources/{row.pk}/", form_of(BMC, password=""))
    assert answer.status_code == 422
    assert operator.post(f"/nodes/box-1/sources/{row.pk}/", form_of(BMC)).status_code == 302


def form_of(source: RedfishSource, **changes: str) -> dict[str, str]:
    given = {
        "name": source.name,
        "url": source.url,
        "username": source.username,
        "password": source.password,
        "auth": "session",
        "seconds": "5",
        "trust": "system",
    }
    return given | changes


def test_who_may_only_look_sees_and_changes_nothing(client: Client, node: Node) -> None:
    (row,) = add(node, BMC)
    client.force_login(User.objects.create_user("lin"))
    text = page(client)
    assert "bmc" in text
    assert "Add a source" not in text
    for path in ("new/redfish/", f"{row.pk}/", f"{row.pk}/remove/", f"{row.pk}/calibrate/"):
        assert client.post(f"/nodes/box-1/sources/{path}", form_of(BMC)).status_code == 403
    assert client.get("/nodes/box-1/sources/new/redfish/").status_code == 403


def test_a_stranger_is_sent_to_sign_in(client: Client, node: Node) -> None:
    assert client.get("/nodes/box-1/sources/").status_code == 302


def test_removing_one_is_an_event_and_a_new_generation(operator: Client, node: Node) -> None:
    (row,) = add(node, BMC)
    before = Node.objects.get().desired_generation
    operator.post(f"/nodes/box-1/sources/{row.pk}/remove/")
    assert not NodeSource.objects.exists()
    assert Node.objects.get().desired_generation == before + 1
    assert "removed" in Event.objects.latest("pk").message


def test_a_microphone_is_calibrated_by_what_a_meter_shows(operator: Client, node: Node) -> None:
    source = MicrophoneSource(name="mic")
    (row,) = add(node, source)
    tell(
        node,
        [measured(MICROPHONE_LEVEL, -78.5, source=source.origin, scope="room", label="mic")],
    )
    operator.post(f"/nodes/box-1/sources/{row.pk}/calibrate/", {"level": "41.5"})
    row.refresh_from_db()
    assert row.settings["offset_db"] == 120.0
    assert row.settings["calibrated"] == timezone.localdate().isoformat()
    assert Node.objects.get().desired_generation == 1


def test_the_fan_law_is_tied_to_the_fans_speed_now(operator: Client, node: Node) -> None:
    (row,) = add(node, FanLawSource(name="fans"))
    speeds = [
        measured(FAN_SPEED, rpm, source="host: hwmon", scope="host", label=label)
        for label, rpm in (("", 4400.0), ("fan1", 4000.0), ("fan2", 4400.0))
    ]
    tell(node, speeds)
    operator.post(f"/nodes/box-1/sources/{row.pk}/calibrate/", {"level": "44"})
    row.refresh_from_db()
    assert row.settings["level_dba"] == 44
    assert 4190 < row.settings["rpm"] < 4230


@pytest.mark.parametrize(("background", "stored"), [("40", 43.3), ("44", None)])
def test_the_rooms_own_sound_is_taken_away(
    operator: Client, node: Node, background: str, stored: float | None
) -> None:
    (row,) = add(node, FanLawSource(name="fans"))
    tell(node, [measured(FAN_SPEED, 4000.0, source="host: hwmon", scope="host", label="fan1")])
    path = f"/nodes/box-1/sources/{row.pk}/calibrate/"
    answer = operator.post(path, {"level": "45", "background": background}, follow=True)
    row.refresh_from_db()
    assert row.settings["level_dba"] == stored
    assert ("Measure nearer" in answer.content.decode()) == (stored is None)


@pytest.mark.parametrize(
    ("source", "level", "said"),
    [
        (MicrophoneSource(name="mic"), "41", "has told nothing for some seconds"),
        (FanLawSource(name="fans"), "quiet", "Enter a number"),
        (FanLawSource(name="fans"), "7", "greater than or equal to 10"),
    ],
)
def test_a_calibration_that_cannot_be_is_refused(
    operator: Client, node: Node, source: Source, level: str, said: str
) -> None:
    (row,) = add(node, source)
    answer = operator.post(
        f"/nodes/box-1/sources/{row.pk}/calibrate/", {"level": level}, follow=True
    )
    assert said in answer.content.decode()
    row.refresh_from_db()
    assert row.settings["calibrated"] == ""


def test_fans_that_cannot_be_read_calibrate_nothing(operator: Client, node: Node) -> None:
    (row,) = add(node, FanLawSource(name="fans"))
    tell(node, [measured(POWER, 1.0, source="x", scope="host")])
    answer = operator.post(
        f"/nodes/box-1/sources/{row.pk}/calibrate/", {"level": "44"}, follow=True
    )
    assert "No fan of box-1 tells its speed now" in answer.content.decode()


def test_a_meter_needs_no_calibration(operator: Client, node: Node) -> None:
    (row,) = add(node, DESK)
    answer = operator.post(f"/nodes/box-1/sources/{row.pk}/calibrate/", {"level": "44"})
    assert answer.status_code == 404
