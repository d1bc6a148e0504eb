"""Errors in Anthropic's shape."""

from typing import Any

from dashboard.gateway.errors import ApiError

TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def envelope(error: ApiError) -> dict[str, Any]:
    """With our own code and field beside what Anthropic's has."""
    usual = "invalid_request_error" if error.status < 500 else "api_error"
    detail = {"type": TYPES.get(error.status, usual), "message": str(error)}
    if error.code:
        detail["code"] = error.code
    if error.param:
        detail["param"] = error.param
    return {"type": "error", "error": detail}
