"""What holds for every page: its headers and its language."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import translation
from django.utils.decorators import sync_and_async_middleware

from dashboard import audit, panel_settings

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


class PanelLanguage(LocaleMiddleware):
    """Whose browser asks for none of our languages reads the panel's first one."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        if "text/html" in request.headers.get("Accept", "") and not _chosen(request):
            translation.activate(str(panel_settings.current()["language"]))
            request.LANGUAGE_CODE = translation.get_language() or settings.LANGUAGE_CODE


def _chosen(request: HttpRequest) -> bool:
    """Whether a cookie or the browser names a language that we speak."""
    asked = request.headers.get("Accept-Language", "")
    named = [part.partition(";")[0].strip() for part in asked.split(",")]
    named.append(request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, ""))
    return any(_spoken(name) for name in named if name)


def _spoken(name: str) -> bool:
    try:
        translation.get_supported_language_variant(name)
    except LookupError:
        return False
    return True


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


UNAUDITED = ("/v1/", "/language/", "/metrics", "/firmware/fetch/")
"""Requests that change nothing of ours, or are told elsewhere."""


@sync_and_async_middleware
def audit_trail(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Whatever a signed-in person changes leaves a line, also where a view has no words of its own
    for it."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            if _changes_nothing(request):
                unchanged: HttpResponseBase = await get_response(request)
                return unchanged
            with audit.listening() as noted:
                response: HttpResponseBase = await get_response(request)
            if not noted and response.status_code < 400:
                await sync_to_async(_note)(request)
            return response

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        if _changes_nothing(request):
            unchanged: HttpResponseBase = get_response(request)
            return unchanged
        with audit.listening() as noted:
            response: HttpResponseBase = get_response(request)
        if not noted and response.status_code < 400:
            _note(request)
        return response

    return answer


def _changes_nothing(request: HttpRequest) -> bool:
    return request.method in ("GET", "HEAD", "OPTIONS") or request.path.startswith(UNAUDITED)


def _note(request: HttpRequest) -> None:
    match = request.resolver_match
    if match is None or not request.user.is_authenticated:
        return
    audit.note(
        audit.actor_of(request),
        f"page.{match.view_name}"[:60],
        request.path,
        after={name: str(value) for name, value in match.kwargs.items()} or None,
    )
