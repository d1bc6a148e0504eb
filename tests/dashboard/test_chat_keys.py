"""API keys: shown once, listed by their beginning, revoked by their owner only."""

import re

import pytest
from django.test import Client

from dashboard.models import ApiKey
from tests.dashboard.gateway_cast import make_deployment, make_key, make_user

pytestmark = pytest.mark.django_db


def signed_in(name: str = "ada") -> Client:
    client = Client()
    client.force_login(make_user(name))
    return client


def test_a_new_key_is_shown_once_with_a_command_to_try_it() -> None:
    make_deployment("smol")
    client = signed_in()
    page = client.post("/keys/", {"name": "report script"})
    found = re.search(r"sk-tdm-[\w-]{40,}", page.content.decode())
    assert found
    assert ApiKey.objects.get().hash == ApiKey.hash_of(found[0])
    assert "curl http://testserver/v1/chat/completions" in page.content.decode()
    assert "no-store" in page.headers["Cache-Control"]
    again = client.get("/keys/").content.decode()
    assert found[0] not in again
    assert "report script" in again


def test_a_key_needs_a_name() -> None:
    client = signed_in()
    assert client.post("/keys/", {"name": " "}).status_code == 422
    assert not ApiKey.objects.exists()


def test_only_its_owner_revokes_a_key() -> None:
    key, _secret = make_key(make_user("bob"))
    client = signed_in()
    assert client.post(f"/keys/{key.pk}/revoke/").status_code == 404
    client.force_login(key.user)
    client.post(f"/keys/{key.pk}/revoke/")
    key.refresh_from_db()
    assert key.revoked is not None
