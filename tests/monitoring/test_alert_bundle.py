"""What a post-mortem keeps, and what it never tells."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.models import Deployment, Event, LogLine, Node, Replica
from monitoring.alerts import bundles, phases
from monitoring.alerts.phases import RankNow
from monitoring.metrics import STEP_SECONDS
from monitoring.models import Bundle, Incident, RankMoment, Reading
from monitoring.samples import measured
from tests.monitoring.alert_cast import Clock, cpu, online, only_rule, tell
from tests.monitoring.cast import launch

pytestmark = pytest.mark.django_db
SECRET = "launch-secret-that-nobody-sees"


@pytest.fixture
def deployment() -> Deployment:
    deployment = launch("abc", [online()])
    Replica.objects.update(token=SECRET)
    return deployment


def critical(clock: Clock) -> Incident:
    only_rule(severity="critical", for_seconds=0)
    clock.round((Node.objects.get(), [cpu(0.95)]))
    return Incident.objects.get()


def content(bundle: Bundle) -> dict[str, Any]:
    found: dict[str, Any] = bundles.opened(bundle)
    return found


def test_a_critical_incident_keeps_one_at_once_and_completes_it_half_a_minute_later(
    deployment: Deployment,
) -> None:
    clock = Clock()
    incident = critical(clock)
    bundle = incident.bundles.get()
    assert bundle.completed is None
    assert content(bundle)["complete"] is False
    node = Node.objects.get()
    clock.rounds(6, (node, [cpu(0.95)]))
    bundle.refresh_from_db()
    assert bundle.completed == clock.now
    told = content(bundle)
    assert told["complete"] is True
    assert datetime.fromisoformat(told["until"]) == incident.opened + timedelta(seconds=30)
    assert incident.bundles.count() == 1


def test_it_holds_every_reading_with_its_unit_and_kind(deployment: Deployment) -> None:
    clock, node = Clock(), Node.objects.get()
    step = measured(STEP_SECONDS, 0.02, source="engine", scope="engine", subject="launch:abc:rank0")
    start = clock.now
    for second in range(1, 4):
        tell(node, start - timedelta(seconds=second), [cpu(0.5), step])
    incident = critical(clock)
    readings = {one["topic"]: one for one in content(incident.bundles.get())["readings"]}
    [layout] = readings[f"{node.pk}/node"]["layouts"]
    assert layout["columns"][:4] == ["metric", "unit", "source", "kind"]
    assert layout["fields"][0][:4] == [
        "cpu_utilization_ratio",
        "ratio",
        "host: /proc/stat",
        "measured",
    ]
    assert [row[1] for row in layout["rows"]] == [[0.5], [0.5], [0.5], [0.95]]
    assert "launch:abc:rank0" in readings


def test_it_tells_what_every_rank_was_at(deployment: Deployment) -> None:
    phases.keep("abc", "ready", [RankNow(0, "step", "allreduce", 12, 88, 0.4, 0.1)])
    ask = bundles.ask(critical(Clock()), "ada", timezone.now())
    [moment] = content(ask)["rank_phases"]
    assert moment["ranks"] == [
        {
            "rank": 0,
            "phase": "step",
            "doing": "allreduce",
            "layer": 12,
            "step": 88,
            "doing_seconds": 0.4,
            "silent_seconds": 0.1,
        }
    ]


def test_it_has_the_ends_of_the_logs_the_events_the_versions_and_the_plan(
    deployment: Deployment,
) -> None:
    node = Node.objects.get()
    LogLine.objects.create(node=node, source="kernel", text="NVRM: Xid 79")
    LogLine.objects.create(node=node, launch="abc", source="rank0", text="step 88")
    Event.objects.create(node=node, message="box-1 is offline.")
    told = content(bundles.ask(critical(Clock()), "ada", timezone.now()))
    assert [line["text"] for line in told["kernel_log"]] == ["NVRM: Xid 79"]
    assert [line["text"] for line in told["engine_log"]] == ["step 88"]
    assert [event["text"] for event in told["events"]] == ["box-1 is offline."]
    [ran] = told["launches"]
    assert (ran["deployment"], ran["ranks"][0]["node"]) == ("smol", "box-1")
    assert told["tandem"]


def test_no_secret_is_in_it(deployment: Deployment) -> None:
    node = Node.objects.get()
    token = "tdn_" + "x" * 40
    LogLine.objects.create(
        launch="abc", source="head", text=f"dialling with {SECRET} and Bearer {token}"
    )
    LogLine.objects.create(
        node=node, source="kernel", text="http://ada:hunter2-hunter2@bmc/ failed"
    )
    Event.objects.create(node=node, message="key sk-tdm-0123456789abcdef was used")
    bundle = bundles.ask(critical(Clock()), "ada", timezone.now())
    text = str(content(bundle))
    for secret in (SECRET, token, "hunter2", "sk-tdm-0123456789", node.token_hash):
        assert secret not in text


def test_it_stays_when_the_readings_go(deployment: Deployment) -> None:
    bundle = critical(Clock()).bundles.get()
    Reading.objects.all().delete()
    bundle.refresh_from_db()
    assert content(bundle)["readings"][0]["layouts"][0]["rows"]


def test_moments_are_forgotten_after_some_minutes() -> None:
    phases.keep("abc", "ready", [])
    phases.forget(timezone.now() + timedelta(minutes=11))
    assert not RankMoment.objects.exists()


def test_it_says_whether_the_box_is_made_up(deployment: Deployment) -> None:
    incident = critical(Clock())
    assert content(incident.bundles.get())["incident"]["simulated"] is False
