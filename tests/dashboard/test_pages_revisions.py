"""A deployment's settings are changed on a page, looked at, applied, and gone back to."""

import re

import pytest
from django.test import Client

from dashboard.models import AuditEntry, Deployment, Job, Replica, Revision
from tests.dashboard.pages_cast import body, make_launch, make_model, make_node, operator, viewer

__all__ = ["operator", "viewer"]

pytestmark = pytest.mark.django_db

SETTINGS = "/deployments/smol/settings/"


@pytest.fixture
def deployment() -> Deployment:
    settings = {"max_model_len": 1000, "kv_cache_tokens": 2048}
    return Deployment.objects.create(name="smol", model=make_model(), settings=settings)


def entered(client: Client, **changes: object) -> dict[str, object]:
    """What the form holds, with changes."""
    form = client.get(SETTINGS).context
    fields: dict[str, object] = {}
    for one in (form["model"], form["form"], form["fallback"]):
        for field in one:
            value = field.value()
            fields[field.html_name] = "" if value is None else value
    return fields | changes


def test_the_form_shows_what_is_in_use(operator: Client, deployment: Deployment) -> None:
    text = body(operator, SETTINGS)
    assert re.search(r'name="kv_cache_tokens" value="2048"', text)
    assert "Tensor parallel" in text


def test_a_change_is_looked_at_before_it_is_applied(
    operator: Client, deployment: Deployment
) -> None:
    answer = operator.post(SETTINGS, entered(operator, kv_cache_tokens=4096, why="More room"))
    assert answer.headers["Location"] == "/deployments/smol/revisions/2/"
    deployment.refresh_from_db()
    assert deployment.kv_cache_tokens == 2048
    text = body(operator, "/deployments/smol/revisions/2/")
    assert "More room" in text
    assert "4096 tokens" in text
    assert "Nothing runs now" in text
    operator.post("/deployments/smol/revisions/2/apply/")
    deployment.refresh_from_db()
    assert deployment.kv_cache_tokens == 4096
    assert AuditEntry.objects.filter(action="deployment.apply").count() == 1


def test_a_form_sent_again_is_the_same_revision(operator: Client, deployment: Deployment) -> None:
    fields = entered(operator, kv_cache_tokens=4096)
    for _again in range(3):
        operator.post(SETTINGS, fields)
    assert Revision.objects.count() == 2


def test_what_is_wrong_is_told_at_its_field(operator: Client, deployment: Deployment) -> None:
    answer = operator.post(SETTINGS, entered(operator, kv_cache_tokens=100, dtype="int3"))
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "must be one of" in text
    answer = operator.post(SETTINGS, entered(operator, kv_cache_tokens=100))
    assert "would not fit" in answer.content.decode()
    assert Revision.objects.filter(state="proposed").count() == 0


def test_a_fallback_can_be_given_to_what_exists(operator: Client, deployment: Deployment) -> None:
    fields = entered(operator) | {"fallback-mode": "cold", "fallback-kv_cache_tokens": "2048"}
    operator.post(SETTINGS, fields)
    operator.post("/deployments/smol/revisions/2/apply/")
    assert Deployment.objects.get().fallback.mode == "cold"
    text = body(operator, "/deployments/smol/revisions/")
    assert "mode=cold" in text


def test_an_earlier_one_is_gone_back_to_with_one_click(
    operator: Client, deployment: Deployment
) -> None:
    operator.post(SETTINGS, entered(operator, kv_cache_tokens=4096))
    operator.post("/deployments/smol/revisions/2/apply/")
    assert "Back to this" in body(operator, "/deployments/smol/revisions/")
    operator.post("/deployments/smol/revisions/1/back/")
    assert Deployment.objects.get().kv_cache_tokens == 2048
    assert Revision.objects.get(number=3).origin == "rollback"


def test_a_looker_sees_and_cannot_change(viewer: Client, deployment: Deployment) -> None:
    assert "Look at the change" not in body(viewer, SETTINGS)
    assert viewer.post(SETTINGS, {}).status_code == 403
    assert viewer.post("/deployments/smol/revisions/1/apply/").status_code in (403, 404)


def test_the_change_is_shown_rather_than_what_it_has_done_for_it(
    operator: Client, deployment: Deployment
) -> None:
    change = Job.objects.create(deployment=deployment, kind="change", generation=0)
    Job.objects.create(deployment=deployment, kind="deploy", generation=0, automatic=True)
    page = operator.get("/deployments/smol/").context
    assert page["job"] == change
    assert [job.kind for job in page["earlier_jobs"]] == ["deploy"]
    Job.objects.create(deployment=deployment, kind="stop", generation=1)
    assert operator.get("/deployments/smol/").context["job"].kind == "stop"


def test_launches_of_a_change_are_told_apart(operator: Client, deployment: Deployment) -> None:
    node = make_node("box-1")
    for role in ("candidate", "retiring", "primary"):
        launch = make_launch(deployment, node)
        Replica.objects.filter(pk=launch.pk).update(role=role, launch=role)
    text = body(operator, "/deployments/smol/")
    names = re.findall(r'<h3 class="strong">([^<]*)</h3>', text)
    assert names == ["Replica 1", "Replica 1 · Retiring", "Replica 1 · Candidate"]
