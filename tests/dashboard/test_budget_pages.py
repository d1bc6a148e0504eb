"""Budgets are set by administrators and shown to whom they limit; keys are rotated."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import ApiKey, AuditEntry, Budget, RoutePrice
from tests.dashboard.gateway_cast import make_deployment, make_key, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def signed_in(name: str, **fields: bool) -> Client:
    client = Client()
    client.force_login(make_user(name, **fields))
    return client


def test_an_administrator_sets_shows_and_removes_a_budget() -> None:
    admin = signed_in("root", is_superuser=True)
    user = make_user("ada")
    asked = {"subject": f"user:{user.pk}", "requests_day": "40", "money_month": "1.50"}
    assert admin.post("/settings/budgets/", asked).status_code == 302
    assert Budget.objects.get().requests_day == 40
    assert "0 / 40" in admin.get("/settings/budgets/").content.decode()
    hers = Client()
    hers.force_login(user)
    assert "0 / 1.5" in hers.get("/keys/").content.decode()
    admin.post("/settings/budgets/", {"subject": f"user:{user.pk}"})
    assert not Budget.objects.exists()
    assert AuditEntry.objects.filter(action="budget.set").count() == 2


def test_a_price_is_set_for_a_route() -> None:
    make_deployment("smol")
    admin = signed_in("root", is_superuser=True)
    asked = {"route": "smol", "prompt": "0.5", "completion": "2"}
    assert admin.post("/settings/budgets/price/", asked).status_code == 302
    assert RoutePrice.objects.get().completion == 2
    assert AuditEntry.objects.filter(action="price.set").exists()


def test_a_rotated_key_has_two_secrets_for_a_while() -> None:
    user = make_user()
    key, old = make_key(user)
    client = Client()
    client.force_login(user)
    page = client.post(f"/keys/{key.pk}/rotate/", {"hours": "1"}).content.decode()
    found = re.search(r"sk-tdm-[\w-]{40,}", page)
    assert found
    for secret in (old, found[0]):
        assert models_for(secret) == 200
    ApiKey.objects.update(old_until=timezone.now())
    assert (models_for(old), models_for(found[0])) == (401, 200)


def test_an_expired_key_and_one_without_the_scope_are_refused() -> None:
    key, secret = make_key(make_user())
    ApiKey.objects.filter(pk=key.pk).update(reads=False)
    assert models_for(secret) == 403
    past = timezone.now() - timedelta(seconds=1)
    ApiKey.objects.filter(pk=key.pk).update(reads=True, expires=past)
    assert models_for(secret) == 401


def test_an_administrator_sees_and_revokes_every_key() -> None:
    key, _secret = make_key(make_user("ada"))
    admin = signed_in("root", is_superuser=True)
    assert key.prefix in admin.get("/settings/keys/").content.decode()
    admin.post(f"/settings/keys/{key.pk}/revoke/")
    key.refresh_from_db()
    assert key.revoked is not None


def models_for(secret: str) -> int:
    return Client(headers={"Authorization": f"Bearer {secret}"}).get("/v1/models").status_code
