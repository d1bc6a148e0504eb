"""A fault nobody foresaw still answers programs in OpenAI's shape."""

import json

import pytest
from django.test import Client

from dashboard.gateway import views


@pytest.mark.django_db
def test_an_unforeseen_fault_is_a_500_in_openai_s_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(views, "authenticate", broken)
    answer = Client(raise_request_exception=False).get("/v1/models")
    assert answer.status_code == 500
    error = json.loads(answer.content)["error"]
    assert error["code"] == "internal_error"
    assert "secret" not in error["message"]
