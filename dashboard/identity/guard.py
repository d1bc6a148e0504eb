"""Who must have a second factor and has none can do nothing but set one up."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from channels.db import database_sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import sync_and_async_middleware
from django.utils.translation import gettext as _

from dashboard.identity import factors

KEYS_NOT_COOKIES = ("/v1/", "/metrics", "/healthz", "/readyz", "/static/", "/i18n.js")
"""Asked with a key, or by anybody."""
OPEN = ("/account/", "/sign-in/", "/sign-out/", "/language/")


@sync_and_async_middleware
def require_second_factor(get_response: Callable[[HttpRequest], Any]) -> Callable[..., Any]:
    if iscoroutinefunction(get_response):

        async def guard_async(request: HttpRequest) -> HttpResponseBase:
            stopped: HttpResponseBase | None = None
            if _is_guarded(request):
                stopped = await sync_to_async(_stopped)(request)
            answer: HttpResponseBase = stopped or await get_response(request)
            return answer

        return guard_async

    def guard(request: HttpRequest) -> HttpResponseBase:
        stopped = _stopped(request) if _is_guarded(request) else None
        answer: HttpResponseBase = stopped or get_response(request)
        return answer

    return guard


def _is_guarded(request: HttpRequest) -> bool:
    return not request.path.startswith((*KEYS_NOT_COOKIES, *OPEN))


def _stopped(request: HttpRequest) -> HttpResponse | None:
    """Nothing is asked of the database for people who are not signed in."""
    if not request.user.is_authenticated or not factors.is_missing(request):
        return None
    url = reverse("account-factor")
    if "text/html" in request.headers.get("Accept", "") or request.method == "GET":
        if request.headers.get("HX-Request"):
            return HttpResponse(status=204, headers={"HX-Redirect": url})
        return redirect(f"{url}?next={request.path}")
    return JsonResponse(
        {"error": _("Set up a second factor first: %(url)s") % {"url": url}}, status=403
    )


class SocketGuard:
    """The same for WebSockets: such a person is nobody there."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if await database_sync_to_async(_is_missing)(scope):
            scope = {**scope, "user": AnonymousUser()}
        await self.application(scope, receive, send)


def _is_missing(scope: dict[str, Any]) -> bool:
    request = HttpRequest()
    request.user, request.session = scope["user"], scope["session"]
    return bool(request.user.is_authenticated) and factors.is_missing(request)
