"""The document tells every address of the public API, and every field that the engine reads."""

from typing import Any

import jsonschema
import msgspec
import pytest
from django.test import Client

from dashboard.gateway.openapi import document
from dashboard.gateway.openapi.chats import ChatRequest, CompletionRequest
from dashboard.gateway.urls import urlpatterns
from engine.head.api import requests
from engine.head.api.fields import Fields
from tests.dashboard.gateway_cast import make_key, make_user

Json = dict[str, Any]
READ: dict[type, Json] = {
    ChatRequest: {"messages": [{"role": "user", "content": "Hi"}]},
    CompletionRequest: {"prompt": "Hi"},
}


class Noted(dict[str, Any]):
    """Remembers which fields were looked for."""

    def __init__(self, fields: Json) -> None:
        super().__init__(fields)
        self.seen: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.seen.add(name)
        return super().get(name, default)


def test_every_address_stands_in_it() -> None:
    named = [str(one.pattern) for one in urlpatterns if one.name not in (None, "response")]
    known = {"/" + one.replace("<str:", "{").replace(">", "}") for one in named}
    assert known == document()["paths"].keys()


@pytest.mark.parametrize(
    ("kind", "read"),
    [(ChatRequest, requests.read_chat), (CompletionRequest, requests.read_completion)],
)
def test_the_engine_reads_what_is_declared_and_nothing_else(
    kind: type[msgspec.Struct], read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = Noted({"model": "m", "temperature": 1, "stream": True} | READ[kind])
    monkeypatch.setattr(Fields, "parse", lambda _payload: Fields(body))
    read(b"")
    other = {"echo", "add_special_tokens"} if kind is ChatRequest else {"tools", "messages"}
    refused = requests.UNSUPPORTED.keys() | other
    declared = {field.name for field in msgspec.structs.fields(kind)}
    if kind is CompletionRequest:
        refused = refused - {"echo", "add_special_tokens"}
    options = {"stream_options"}
    assert body.seen - refused | options == declared


@pytest.mark.django_db(transaction=True)
def test_its_schemas_are_schemas_and_it_takes_a_key() -> None:
    _key, secret = make_key(make_user())
    assert Client().get("/v1/openapi.json").status_code == 401
    told = Client(headers={"x-api-key": secret}).get("/v1/openapi.json").json()
    for name, schema in told["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        for reference in _references(schema):
            assert reference.rpartition("/")[2] in told["components"]["schemas"], name


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        found = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return found + [one for inner in value.values() for one in _references(inner)]
    return [one for inner in value for one in _references(inner)] if isinstance(value, list) else []
