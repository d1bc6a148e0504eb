"""A model that leaves the catalogue leaves no change of settings that cannot be told or ended."""

import pytest
from django.test import Client

from dashboard.choices import RevisionState
from dashboard.models import Deployment, Model, Revision
from tests.dashboard.pages_cast import make_model, operator
from tests.dashboard.test_settings_api import program, send, smol

__all__ = ["operator", "program", "smol"]
pytestmark = pytest.mark.django_db
SMOL = "/api/v1/deployments/smol"


def proposed(program: Client, **content: object) -> int:
    make_model("other")
    status, told = send(program, "PATCH", f"{SMOL}/settings?apply=0", content=content)
    assert status == 200, told
    Model.objects.get(name="other").delete()
    return int(told["revision"]["number"])


def test_a_proposal_for_it_is_not_applied(
    program: Client, smol: Deployment, operator: Client
) -> None:
    number = proposed(program, model="other")
    status, told = send(program, "POST", f"{SMOL}/revisions/{number}/apply")
    assert (status, "other" in told["error"]["message"]) == (409, True)
    assert operator.get(f"/deployments/smol/revisions/{number}/").status_code == 200
    answer = operator.post(f"/deployments/smol/revisions/{number}/apply/", follow=True)
    assert (answer.status_code, "no model other" in answer.content.decode()) == (200, True)
    smol.refresh_from_db()
    assert smol.model.name != "other"


def test_a_fallback_on_it_is_not_silently_another(program: Client, smol: Deployment) -> None:
    fallback = {"mode": "cold", "returns": "auto", "tp": 1, "dtype": "fp32", "kv_dtype": "fp32"}
    content = {"fallback": {**fallback, "kv_cache_tokens": 2048, "model": "other"}}
    number = proposed(program, **content)
    status, told = send(program, "POST", f"{SMOL}/revisions/{number}/apply")
    assert (status, "other" in told["error"]["message"]) == (409, True)
    assert Revision.objects.get(number=number).state == "proposed"


def test_it_stays_while_a_deployment_is_on_its_way_to_it(
    smol: Deployment, operator: Client
) -> None:
    model = make_model("other")
    coming = Revision.objects.create(
        deployment=smol,
        number=2,
        values={},
        content={"model": "other", "fallback": None},
        state=RevisionState.APPLYING,
    )
    page = f"/admin/dashboard/model/{model.pk}/delete/"
    assert operator.post(page, {"post": "yes"}).status_code == 403
    Revision.objects.filter(pk=coming.pk).update(state=RevisionState.FAILED)
    assert operator.post(page, {"post": "yes"}).status_code == 302
    assert not Model.objects.filter(name="other").exists()
