"""`/v1/models` lists what can be asked; a key's last use is remembered, not rewritten."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.choices import DeploymentStatus
from dashboard.models import ApiKey, Deployment
from tests.dashboard.gateway_cast import make_deployment, make_key, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def client_with_key() -> tuple[Client, ApiKey]:
    key, secret = make_key(make_user())
    return Client(headers={"Authorization": f"Bearer {secret}"}), key


def test_the_list_holds_wanted_deployments_with_their_context_length() -> None:
    client, _key = client_with_key()
    make_deployment("big", max_model_len=512)
    make_deployment("small", status=DeploymentStatus.STARTING)
    Deployment.objects.filter(pk=make_deployment("gone").pk).update(wanted=False)
    data = client.get("/v1/models").json()
    assert data["object"] == "list"
    found = {entry["id"]: (entry["max_model_len"], entry["status"]) for entry in data["data"]}
    assert found == {"big": (512, "ready"), "small": (2048, "starting")}


def test_one_model_can_be_asked_for_by_name() -> None:
    client, _key = client_with_key()
    make_deployment("big")
    assert client.get("/v1/models/big").json()["owned_by"] == "tandem"
    Deployment.objects.filter(pk=make_deployment("gone").pk).update(wanted=False)
    missing = client.get("/v1/models/other")
    assert missing.status_code == 404
    assert "Available: big." in missing.json()["error"]["message"]
    assert missing.json()["error"]["code"] == "model_not_found"


def test_a_sign_in_cookie_is_not_a_key() -> None:
    client = Client()
    client.force_login(make_user())
    assert client.get("/v1/models").status_code == 401


def test_last_use_is_written_at_most_once_a_minute() -> None:
    client, key = client_with_key()
    client.get("/v1/models")
    key.refresh_from_db()
    first = key.last_used
    assert first is not None
    client.get("/v1/models")
    key.refresh_from_db()
    assert key.last_used == first
    earlier = timezone.now() - timedelta(minutes=2)
    ApiKey.objects.filter(pk=key.pk).update(last_used=earlier)
    client.get("/v1/models")
    key.refresh_from_db()
    assert key.last_used is not None
    assert key.last_used > earlier
