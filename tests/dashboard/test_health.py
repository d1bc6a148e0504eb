from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import AsyncClient
from pytest_django import Settings

from dashboard import health
from dashboard.health import Part, Readiness

pytestmark = pytest.mark.urls("dashboard.health")


@pytest.fixture(autouse=True)
def forget_earlier_answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    questions = dict(health.QUESTIONS)
    monkeypatch.setattr(health, "readiness", Readiness(questions))
    yield
    health.readiness.close()


async def test_healthz_answers_without_the_database(async_client: AsyncClient) -> None:
    answer = await async_client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"


@pytest.mark.django_db(transaction=True)
async def test_readyz_says_that_no_worker_answers(async_client: AsyncClient) -> None:
    answer = await async_client.get("/readyz")
    assert answer.status_code == 503
    parts = answer.json()
    assert parts["database"] == {"ok": True, "detail": "answers"}
    assert parts["broker"] == {"ok": True, "detail": "answers"}
    assert parts["worker"] == {"ok": False, "detail": "No worker answered within 2 s."}


@pytest.mark.django_db(transaction=True)
async def test_readyz_says_that_the_broker_is_away(
    async_client: AsyncClient, settings: Settings, tmp_path: Path
) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    answer = await async_client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["broker"] == {"ok": False, "detail": "The broker does not answer."}


async def test_answers_are_remembered_for_a_moment() -> None:
    asked = []

    def ask() -> Part:
        asked.append(1)
        return Part(ok=True, detail="answers")

    readiness = Readiness({"database": ask})
    first, second = await readiness.parts(), await readiness.parts()
    readiness.close()
    assert first == second == {"database": {"ok": True, "detail": "answers"}}
    assert len(asked) == 1
