"""What happened in a stretch of time is told to the charts of the thing it happened to."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.choices import EventLevel, JobKind, JobStatus, MessageRole
from dashboard.models import ApiRequest, Conversation, Deployment, Event, Job, Message
from monitoring.models import Alert
from tests.dashboard.pages_cast import make_model, make_node, viewer

__all__ = ["viewer"]


@pytest.fixture
def smol(db: None) -> Deployment:
    return Deployment.objects.create(name="smol", model=make_model())


def markers(client: Client, scope: str, pk: int | None = None) -> list[dict[str, object]]:
    now = time.time()
    query = {"scope": scope, "from": str(now - 600), "to": str(now + 5)}
    answer = client.get("/telemetry/markers", query | ({"id": str(pk)} if pk else {}))
    found: list[dict[str, object]] = answer.json()["markers"]
    return found


def test_a_job_is_marked_from_its_beginning_to_its_end(viewer: Client, smol: Deployment) -> None:
    job = Job.objects.create(
        kind=JobKind.DEPLOY, deployment=smol, generation=1, status=JobStatus.FAILED
    )
    Job.objects.filter(pk=job.pk).update(finished_at=job.created + timedelta(seconds=7))
    (found,) = markers(viewer, "deployment", smol.pk)
    assert (found["kind"], found["level"]) == ("job", "error")
    assert found["text"] == "Deploy smol: Failed"
    assert found["url"] == "/deployments/smol/"
    assert float(str(found["until"])) - float(str(found["at"])) == pytest.approx(7)


def test_an_event_is_marked_where_it_belongs(viewer: Client, smol: Deployment) -> None:
    box = make_node("box-1")
    Event.objects.create(node=box, level=EventLevel.WARNING, message="The agent is silent.")
    (found,) = markers(viewer, "node", box.pk)
    assert (found["kind"], found["level"], found["until"]) == ("event", "warning", None)
    assert found["text"] == "The agent is silent."
    assert len(markers(viewer, "fleet")) == 1
    assert markers(viewer, "deployment", smol.pk) == []


def test_an_alert_that_still_fires_has_no_end(viewer: Client, smol: Deployment) -> None:
    at = timezone.now() - timedelta(minutes=30)
    Alert.objects.create(
        rule_name="KV cache full",
        kind="threshold",
        topic="launch:abc",
        deployment=smol,
        severity="critical",
        status="firing",
        threshold=0.95,
        began=at,
        fired=at,
        seen=at.timestamp(),
    )
    (found,) = markers(viewer, "deployment", smol.pk)
    assert (found["kind"], found["level"], found["until"]) == ("alert", "error", None)


def test_a_request_is_marked_without_a_word_of_it(viewer: Client, smol: Deployment) -> None:
    talk = Conversation.objects.create(user_id=viewer.session["_auth_user_id"], route="smol")
    Message.objects.create(
        conversation=talk,
        role=MessageRole.ASSISTANT,
        content="A secret answer.",
        metrics={"seconds": 4.0},
    )
    (found,) = markers(viewer, "deployment", smol.pk)
    assert (found["kind"], found["text"]) == ("request", "An answer of smol")
    assert float(str(found["until"])) - float(str(found["at"])) == pytest.approx(4)


def request(smol: Deployment, number: int, **fields: Any) -> None:
    """Answered without a wait unless told otherwise."""
    ApiRequest.objects.create(
        request=f"req_{number}",
        deployment=smol,
        route=smol.name,
        endpoint="/v1/chat/completions",
        streamed=True,
        begun=timezone.now() - timedelta(seconds=30 + number),
        **{"seconds": 5.0, "first_token_seconds": 0.8, "status": 200, "outcome": "answered"}
        | fields,
    )


def test_requests_that_tell_something_are_marked(viewer: Client, smol: Deployment) -> None:
    for number in range(5):
        request(smol, number)
    request(smol, 10, first_token_seconds=1.61)
    request(smol, 11, first_token_seconds=1.5)
    request(smol, 12, outcome="failed", status=502, error="upstream_failed", seconds=3.0)
    refused = {"outcome": "refused", "first_token_seconds": None, "seconds": 0.0}
    request(smol, 13, status=503, error="queue_full", **refused)
    request(smol, 14, status=404, error="model_not_found", **refused)
    request(smol, 15, outcome="cut_off")
    found = markers(viewer, "deployment", smol.pk)
    assert [(m["kind"], m["level"], m["text"], m["url"]) for m in found] == [
        (
            "request",
            "warning",
            "A request to smol was refused after 0.0 s: queue_full",
            "/monitor/logs/?q=req_13",
        ),
        (
            "request",
            "error",
            "A request to smol failed after 3.0 s: upstream_failed",
            "/monitor/logs/?q=req_12",
        ),
        (
            "request",
            "warning",
            "A request to smol: first token after 1.6 s (median 0.8 s)",
            "/monitor/logs/?q=req_10",
        ),
    ]
    assert float(str(found[1]["until"])) - float(str(found[1]["at"])) == pytest.approx(3)
    assert len(markers(viewer, "fleet")) == 3


def test_what_takes_less_than_a_second_is_not_slow(viewer: Client, smol: Deployment) -> None:
    for number in range(3):
        request(smol, number, first_token_seconds=0.1)
    request(smol, 9, first_token_seconds=0.9)
    assert markers(viewer, "deployment", smol.pk) == []


def test_of_many_requests_failures_are_told_first(
    viewer: Client, smol: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.markers.MOST_TELLING", 2)
    for number in range(3):
        request(smol, number, outcome="refused", status=429, error="too_many")
    request(smol, 9, outcome="failed", status=500, error="engine_error")
    assert sorted(str(m["level"]) for m in markers(viewer, "fleet")) == ["error", "warning"]


def test_what_lies_outside_is_not_told(viewer: Client, smol: Deployment) -> None:
    event = Event.objects.create(deployment=smol, message="Long ago.")
    Event.objects.filter(pk=event.pk).update(at=timezone.now() - timedelta(hours=2))
    assert markers(viewer, "fleet") == []


@pytest.mark.parametrize(
    "query", ["scope=fleet&from=9&to=5", "scope=moon&from=1&to=2", "scope=node"]
)
def test_a_question_that_makes_no_sense_is_refused(viewer: Client, query: str) -> None:
    assert viewer.get(f"/telemetry/markers?{query}").status_code == 400


def test_strangers_are_told_nothing(db: None) -> None:
    assert Client().get("/telemetry/markers?scope=fleet&from=1&to=2").status_code == 401
