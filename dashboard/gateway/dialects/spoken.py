"""Which dialect a caller speaks, and errors in it."""

from collections.abc import Mapping

import msgspec
from django.http import HttpResponse

from dashboard.gateway.dialects.anthropic.errors import envelope
from dashboard.gateway.errors import ApiError

MESSAGES = "/v1/messages"
VERSION = "anthropic-version"
"""A header that every client of Anthropic's sends."""


def is_anthropic(path: str, headers: Mapping[str, str]) -> bool:
    return path == MESSAGES or path.startswith(f"{MESSAGES}/") or VERSION in headers


def error_body(error: ApiError, path: str, headers: Mapping[str, str]) -> bytes:
    if is_anthropic(path, headers):
        return msgspec.json.encode(envelope(error))
    return error.encode()


def error_response(error: ApiError, path: str, headers: Mapping[str, str]) -> HttpResponse:
    response = error.response()
    response.content = error_body(error, path, headers)
    return response
