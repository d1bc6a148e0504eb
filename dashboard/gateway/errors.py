"""Errors of the public API, in OpenAI's shape."""

from typing import Any

import msgspec
from django.http import HttpResponse

from dashboard.errors import TandemError


class ApiError(TandemError):
    """A request that gets no answer: HTTP status, OpenAI's type, code and offending field."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry_after = retry_after

    @property
    def type(self) -> str:
        return "invalid_request_error" if self.status < 500 else "server_error"

    @property
    def envelope(self) -> dict[str, Any]:
        return {
            "error": {
                "message": str(self),
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }

    def encode(self) -> bytes:
        return msgspec.json.encode(self.envelope)

    def response(self) -> HttpResponse:
        response = HttpResponse(self.encode(), status=self.status, content_type="application/json")
        if self.retry_after is not None:
            response["Retry-After"] = str(self.retry_after)
        if self.status == 401:
            response["WWW-Authenticate"] = "Bearer"
        return response
