"""Response headers that hold for every page."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; "
    "script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; "  # Plotly writes style attributes
    "img-src 'self' data: blob:; "
    "font-src 'self' data:; "
    "connect-src 'self'; "
    "object-src 'none'; "
    "base-uri 'self'; "
    "form-action 'self'; "
    "frame-ancestors 'none'"
)

ADMIN_POLICY = CONTENT_SECURITY_POLICY.replace(
    "script-src 'self'",
    "script-src 'self' 'unsafe-inline' 'unsafe-eval'",  # the admin theme runs on Alpine
)


@sync_and_async_middleware
def content_security_policy(get_response: Callable[[HttpRequest], Any]) -> Callable[..., Any]:
    """Nothing but our own origin may run, style or be talked to."""
    if iscoroutinefunction(get_response):

        async def protect_async(request: HttpRequest) -> HttpResponseBase:
            return _protected(request, await get_response(request))

        return protect_async

    def protect(request: HttpRequest) -> HttpResponseBase:
        return _protected(request, get_response(request))

    return protect


def _protected(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    policy = ADMIN_POLICY if request.path.startswith("/admin/") else CONTENT_SECURITY_POLICY
    response.headers.setdefault("Content-Security-Policy", policy)
    return response
