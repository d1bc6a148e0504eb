"""What a program sends wrongly is refused in words, never by an error of ours."""

import json
from typing import Any

import pytest
from django.test import Client

from dashboard.lifecycle.revisions import current
from dashboard.models import Deployment, Revision
from tests.dashboard.pages_cast import operator
from tests.dashboard.test_settings_api import FITS, program, send, smol

__all__ = ["operator", "program", "smol"]
pytestmark = pytest.mark.django_db

SMOL = "/api/v1/deployments/smol/settings"
FALLBACK = {"mode": "cold", "returns": "auto", "tp": 1, "dtype": "fp32", "kv_dtype": "fp32"}


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
@pytest.mark.parametrize(
    "place",
    [
        lambda text: {"settings": {"max_batch_size": 4}, "why": text},
        lambda text: {"settings": {text: 4}},
        lambda text: {"content": {"model": text}},
        lambda text: {"content": {"fallback": {"model": text}}},
    ],
    ids=["why", "name", "model", "fallback"],
)
def test_text_that_the_database_does_not_take(
    program: Client, smol: Deployment, place: Any, text: str
) -> None:
    status, told = send(program, "PATCH", SMOL, **place(text))
    assert (status, "null character" in told["error"]["message"]) == (400, True)
    assert not Revision.objects.exists()


@pytest.mark.parametrize(
    "content",
    [
        {"fallback": "cold"},
        {"fallback": []},
        {"fallback": True},
        {"fallback": 0},
        {"fallback": {}},
        {"fallback": {"mode": ["cold"], "returns": {}}},
        {"fallback": {**FALLBACK, "kv_cache_tokens": 2048, "model": ["stub"]}},
        {"fallback": {**FALLBACK, "kv_cache_tokens": 2048, "more": 1}},
        {"model": ["stub"]},
        {"model": None},
        {"more": 1},
    ],
    ids=lambda content: json.dumps(content)[:40],
)
@pytest.mark.parametrize("look", ["", "?dry_run=1"])
def test_content_of_another_shape(
    program: Client, smol: Deployment, content: dict[str, Any], look: str
) -> None:
    status, told = send(program, "PATCH", SMOL + look, content=content)
    assert (status, bool(told["error"]["message"])) == (422, True)
    smol.refresh_from_db()
    assert smol.fallback_or_none is None


def test_a_fallbacks_numbers_may_be_sent_as_text(program: Client, smol: Deployment) -> None:
    content = {"fallback": {**FALLBACK, "tp": "1", "kv_cache_tokens": "2048"}}
    status, told = send(program, "PATCH", SMOL, content=content)
    assert (status, told["revision"]["content"]["fallback"]["kv_cache_tokens"]) == (200, 2048)
    content["fallback"]["kv_cache_tokens"] = 2048
    _status, told = send(program, "PATCH", f"{SMOL}?dry_run=1", content=content)
    assert told["changes"] == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"settings": {"token_budget": NaN}}',
        b'{"settings": {"token_budget": 1e999}}',
        b'{"settings": {"token_budget": ' + b"9" * 4200 + b"}}",
        b'{"settings": {"token_budget": ' + b"9" * 5000 + b"}}",
        b'{"settings": {"token_budget": "%(value)s"}}',
        b'{"settings": {"token_budget": {"a": [1]}}}',
        b'{"settings": {"tp": 1000000}}',
        b'{"settings": {"rank_weights": "nan,1", "tp": 2}}',
        b'{"settings": [1]}',
        b'{"a": ' + b"[" * 900 + b"]" * 900 + b', "settings": {"token_budget": -1}}',
        b'{"settings":' + b"[" * 100_000,
        b"\xff",
        b"[]",
    ],
    ids=range(13),
)
def test_odd_bodies(program: Client, smol: Deployment, body: bytes) -> None:
    answer = program.generic("PATCH", SMOL, body, content_type="application/json")
    assert (answer.status_code in (400, 422), bool(answer.json()["error"])) == (True, True)
    smol.refresh_from_db()
    assert smol.settings == {**FITS, "max_batch_size": 8}


@pytest.mark.parametrize("digits", ["9" * 5000, "99999999999", "٣"], ids=["long", "large", "other"])
def test_numbers_that_no_revision_has(operator: Client, smol: Deployment, digits: str) -> None:
    page = "/deployments/smol/revisions"
    current(smol)
    assert operator.get(f"{page}/1/?against={digits}").status_code == 200
    assert operator.post(f"{page}/{digits}/apply/").status_code == 404
    assert operator.post(f"/firmware/updates/{digits}/cancel/").status_code == 404
