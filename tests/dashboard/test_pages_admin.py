"""The administration: everything to look at, no secret, no way past the lifecycle."""

import pytest
from django.contrib import admin
from django.test import Client

from dashboard.models import ApiKey, Conversation, Deployment, Event, Job, Node, Replica
from tests.dashboard.pages_cast import body, make_launch, make_model, make_node, operator, viewer

__all__ = ["operator", "viewer"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def everything(operator: Client) -> None:
    row = Deployment.objects.create(name="smol", model=make_model(), settings={"tp": 2})
    make_launch(row, make_node("box-1"), make_node("box-2"))
    Event.objects.create(
        deployment=row, message="Ready after %(seconds)s s.", params={"seconds": 1}
    )
    job = Job.objects.create(kind="deploy", deployment=row, generation=1)
    job.steps.create(index=0, name="plan", title="Plan the split")
    owner_id = int(operator.session["_auth_user_id"])
    key = ApiKey(user_id=owner_id, name="ci")
    key.issue()
    key.save()
    talk = Conversation.objects.create(user_id=owner_id, title="Private matters", route="smol")
    talk.messages.create(role="user", content="my private words")


def addresses() -> list[str]:
    found = []
    for model in admin.site._registry:
        place = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        found.append(place)
        found += [
            f"{place}{pk}/change/" for pk in model._default_manager.values_list("pk", flat=True)
        ]
    return found


@pytest.mark.usefixtures("everything")
def test_every_page_opens_and_shows_no_secret(operator: Client) -> None:
    hashes = [Node.objects.values_list("token_hash", flat=True)[0], ApiKey.objects.get().hash]
    for path in ["/admin/", *addresses()]:
        text = body(operator, path)
        for secret in (*hashes, "launch-secret", "my private words", "Private matters"):
            assert secret not in text, path


@pytest.mark.usefixtures("everything")
def test_no_form_writes_a_status_or_adds_a_row(operator: Client) -> None:
    for name in ("deployment", "replica", "node", "event", "job", "model", "apikey"):
        assert operator.get(f"/admin/dashboard/{name}/add/").status_code == 403, name
    for row in (Node.objects.first(), Deployment.objects.first(), Replica.objects.first()):
        assert row is not None
        text = body(operator, f"/admin/dashboard/{row._meta.model_name}/{row.pk}/change/")
        assert 'name="status"' not in text
        assert 'name="reason"' not in text


def test_only_staff_may_enter(viewer: Client) -> None:
    assert viewer.get("/admin/").status_code == 302
    assert "/admin/" not in body(viewer, "/")


def test_staff_find_it_in_the_menu(operator: Client) -> None:
    assert 'href="/admin/"' in body(operator, "/")
