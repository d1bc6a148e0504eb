"""One click changes the language, for anybody, and history is read in it too."""

import pytest
from django.test import Client

from dashboard.models import Deployment, Event
from dashboard.translations import compile_stale
from tests.dashboard.pages_cast import body, make_model, operator

__all__ = ["operator"]
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    compile_stale()


def speak_chinese(client: Client, here: str) -> None:
    answer = client.post("/language/", {"language": "zh-hans", "next": here})
    assert answer["Location"] == here


def test_before_signing_in(client: Client) -> None:
    speak_chinese(client, "/sign-in/")
    text = body(client, "/sign-in/")
    assert "登录您的集群。" in text
    assert '<html lang="zh-hans"' in text


def test_signed_in(operator: Client) -> None:
    speak_chinese(operator, "/")
    assert "概览" in body(operator, "/")


def test_events_are_kept_once_and_read_in_every_language(operator: Client) -> None:
    row = Deployment.objects.create(name="smol", model=make_model())
    Event.objects.create(
        deployment=row, message="Ready after %(seconds)s s.", params={"seconds": 9}
    )
    assert "Ready after 9 s." in body(operator, "/deployments/smol/")
    speak_chinese(operator, "/")
    assert "9 秒后就绪。" in body(operator, "/deployments/smol/")


def test_scripts_speak_it_too(client: Client) -> None:
    speak_chinese(client, "/sign-in/")
    catalogue = body(client, "/i18n.js")
    assert "\\u521a\\u521a" in catalogue  # "just now"
