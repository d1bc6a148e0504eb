"""Paths, their parameters, and the schemas of what is declared."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dashboard.gateway.dialects.anthropic import asked as anthropic
from dashboard.gateway.dialects.responses import asked as responses
from dashboard.gateway.openapi.chats import ChatRequest, CompletionRequest

Json = dict[str, Any]
PLAIN = "#/components/schemas/"
OPENAI_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
ANTHROPIC_ERROR = {
    "type": "object",
    "required": ["type", "error"],
    "properties": {
        "type": {"const": "error"},
        "error": {
            "type": "object",
            "required": ["type", "message"],
            "properties": {
                "type": {"type": "string"},
                "message": {"type": "string"},
                "code": {"type": "string"},
                "param": {"type": "string"},
            },
        },
    },
}


def document() -> Json:
    """OpenAPI 3.1."""
    schemas: Json = {"Error": OPENAI_ERROR, "AnthropicError": ANTHROPIC_ERROR}
    chat, completion = _add(schemas, "", [ChatRequest, CompletionRequest])
    response, counted = _add(schemas, "Response", [responses.Asked, responses.Counted])
    items = _add(schemas, "Response", list(responses.ITEMS.values()))
    for name in ("ResponseAsked", "ResponseCounted"):
        texts = [{"type": "string"}, {"type": "null"}]
        listed = {"type": "array", "items": {"anyOf": items}}
        schemas[name]["properties"]["input"]["anyOf"] = [*texts, listed]
    message, tokens = _add(schemas, "Anthropic", [anthropic.Asked, anthropic.Counted])
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tandem", "version": "v1"},
        "security": [{"bearer": []}, {"apiKey": []}],
        "paths": {
            "/v1/chat/completions": _post("A chat", chat, streams=True),
            "/v1/completions": _post("Text that goes on", completion, streams=True),
            "/v1/responses": _post("A response", response, streams=True),
            "/v1/responses/input_tokens": _post("The length of an input", counted),
            "/v1/messages": _post("A message", message, streams=True, error="AnthropicError"),
            "/v1/messages/count_tokens": _post(
                "The length of a prompt", tokens, error="AnthropicError"
            ),
            "/v1/models": _get("Models, in the dialect of who asks", [VERSION, *PAGES]),
            "/v1/models/{name}": _get("One of them", [_in("path", "name"), VERSION]),
            "/v1/streams/{stream}": _get(
                "The rest of a stream that broke",
                [_in("path", "stream"), _in("header", "Last-Event-ID")],
                content="text/event-stream",
            ),
            "/v1/openapi.json": _get("This document", []),
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _add(schemas: Json, prefix: str, kinds: Sequence[type]) -> list[Json]:
    """References to them; what they are made of is added too, under names of their own."""
    references, found = msgspec.json.schema_components(
        kinds, ref_template=f"{PLAIN}{prefix}{{name}}"
    )
    schemas |= {prefix + name: schema for name, schema in found.items()}
    return list(references)


def _in(place: str, name: str) -> Json:
    return {"in": place, "name": name, "required": place == "path", "schema": {"type": "string"}}


VERSION = _in("header", "anthropic-version")
PAGES = [_in("query", name) for name in ("limit", "after_id", "before_id")]


def _get(summary: str, parameters: Sequence[Json], content: str = "application/json") -> Json:
    told = {"summary": summary, "parameters": parameters}
    return {"get": told | {"responses": _answers("Error", [content])}}


def _post(summary: str, body: Json, *, streams: bool = False, error: str = "Error") -> Json:
    kinds = ["application/json", *(["text/event-stream"] if streams else [])]
    asked = {"required": True, "content": {"application/json": {"schema": body}}}
    return {"post": {"summary": summary, "requestBody": asked, "responses": _answers(error, kinds)}}


def _answers(error: str, kinds: Sequence[str]) -> Json:
    told = {"application/json": {"schema": {"$ref": PLAIN + error}}}
    return {
        "200": {"description": "The answer.", "content": {kind: {} for kind in kinds}},
        "default": {"description": "Why there is none.", "content": told},
    }
