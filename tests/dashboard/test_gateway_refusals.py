"""Whatever is wrong is said in OpenAI's shape, with the remedy."""

from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.test import AsyncClient
from django.utils import timezone

from dashboard.choices import DeploymentStatus, ReplicaStatus
from dashboard.gateway import hold
from dashboard.models import ApiKey, Rank
from tests.dashboard.fake_head import FakeHead, running
from tests.dashboard.gateway_cast import (
    make_deployment,
    make_key,
    make_replica,
    make_user,
    panel,
    stage,
)

pytestmark = pytest.mark.django_db(transaction=True)
ASK = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}
CHAT = "/v1/chat/completions"


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def post(body: Any, secret: str = "", path: str = CHAT) -> tuple[Any, dict[str, Any]]:
    headers = bearer(secret) if secret else {}
    response = await AsyncClient().post(
        path, body, content_type="application/json", headers=headers
    )
    assert response.headers["X-Request-Id"].startswith("req_")
    assert not response.cookies
    return response, response.json()["error"]


@pytest.mark.parametrize("secret", ["", "sk-tdm-nobody"])
async def test_a_missing_or_wrong_key_is_401(secret: str) -> None:
    response, error = await post(ASK, secret)
    assert response.status_code == 401
    assert error["code"] == "invalid_api_key"
    assert error["type"] == "invalid_request_error"


def revoked() -> str:
    key, secret = make_key(make_user())
    ApiKey.objects.filter(pk=key.pk).update(revoked=timezone.now())
    return secret


async def test_a_revoked_key_is_401() -> None:
    secret = await database_sync_to_async(revoked)()
    response, _error = await post(ASK, secret)
    assert response.status_code == 401


async def test_the_key_of_a_disabled_user_is_401() -> None:
    _key, secret = await database_sync_to_async(lambda: make_key(make_user(is_active=False)))()
    response, _error = await post(ASK, secret)
    assert response.status_code == 401


async def test_an_unknown_model_is_404_and_names_the_known_ones() -> None:
    secret = await database_sync_to_async(stage)(None, name="big")
    response, error = await post(ASK, secret)
    assert response.status_code == 404
    assert error["code"] == "model_not_found"
    assert error["param"] == "model"
    assert "“smol”" in error["message"]
    assert "big" in error["message"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        ("{}", "missing_model"),
        ('{"model": 3}', "missing_model"),
    ],
)
async def test_a_body_that_cannot_be_read_is_400(body: str, code: str) -> None:
    secret = await database_sync_to_async(stage)(None)
    response, error = await post(body, secret)
    assert response.status_code == 400
    assert error["code"] == code


async def test_a_failed_deployment_is_503_with_its_own_reason() -> None:
    reason = "Rank 1 on node-b was killed by signal 9."
    secret = await database_sync_to_async(stage)(
        None, status=DeploymentStatus.FAILED, reason=reason
    )
    response, error = await post(ASK, secret)
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "60"
    assert error["code"] == "model_not_ready"
    assert error["type"] == "server_error"
    assert reason in error["message"]


def loading() -> str:
    _key, secret = make_key(make_user())
    deployment = make_deployment(status=DeploymentStatus.STARTING)
    replica = make_replica(deployment, 1, status=ReplicaStatus.STARTING)
    for rank, progress in ((0, 0.5), (1, 0.76)):
        Rank.objects.create(
            replica=replica,
            rank=rank,
            stage=0,
            stage_rank=rank,
            node=replica.head_node,
            progress=progress,
        )
    return secret


async def test_a_deployment_on_its_way_up_says_how_far_it_is() -> None:
    secret = await database_sync_to_async(loading)()
    response, error = await post(ASK, secret)
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "5"
    assert "63%" in error["message"]


async def test_unknown_paths_and_methods_keep_the_shape() -> None:
    secret = await database_sync_to_async(stage)(None)
    response, error = await post(ASK, secret, "/v1/embeddings")
    assert (response.status_code, error["code"]) == (404, "unknown_url")
    response = await AsyncClient().get(CHAT, headers=bearer(secret))
    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"
    assert response.json()["error"]["code"] == "method_not_allowed"


async def test_the_heads_own_refusal_passes_through() -> None:
    refusal = {"error": {"message": "temperature must be at most 2.", "param": "temperature"}}
    async with running(FakeHead(refusal=(400, refusal))) as head:
        secret = await database_sync_to_async(stage)(head)
        async with panel(secret) as client:
            response = await client.post(CHAT, json={**ASK, "temperature": 9, "stream": True})
            assert response.status == 400
            assert await response.json() == refusal
    assert head.bodies == [{**ASK, "temperature": 9, "stream": True}]


def stale_token(head: FakeHead) -> str:
    _key, secret = make_key(make_user())
    make_replica(make_deployment(), head.port, token="of another launch")
    return secret


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for a head that may come back."""
    monkeypatch.setattr(hold, "WAIT_SECONDS", 0.3)


@pytest.mark.usefixtures("impatient")
async def test_a_refused_launch_token_is_not_blamed_on_the_callers_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(FakeHead()) as head:
        secret = await database_sync_to_async(stale_token)(head)
        async with panel(secret) as client:
            response = await client.post(CHAT, json=ASK)
            assert response.status == 502
    assert "of another launch" not in caplog.text


@pytest.mark.usefixtures("impatient")
async def test_a_head_that_cannot_be_reached_is_502() -> None:
    async with running(FakeHead()) as head:
        secret = await database_sync_to_async(stage)(head)
    async with panel(secret) as client:
        response = await client.post(CHAT, json=ASK)
        assert response.status == 502
        assert (await response.json())["error"]["code"] == "upstream_failed"


@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000])
async def test_a_body_nested_too_deeply_is_400(body: str) -> None:
    secret = await database_sync_to_async(stage)(None, name="big")
    response, error = await post(body, secret)
    assert (response.status_code, error["code"]) == (400, "invalid_json")
