"""What belongs to a team is not there for anybody else: one guard before every page about a
deployment or a node, so that none can forget it."""

import re
from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve
from django.utils.decorators import sync_and_async_middleware
from django.utils.translation import gettext as _

from dashboard.models import Deployment, Node
from dashboard.views.access import hidden_of

ABOUT_ONE = re.compile(
    r"^/(?:firmware/|api/v1/)?(?P<what>deployments|nodes)/(?P<name>[-\w]+)(?:/|$)"
)


@sync_and_async_middleware
def hide_from_others(get_response: Callable[[HttpRequest], Any]) -> Callable[..., Any]:
    if iscoroutinefunction(get_response):

        async def hide_async(request: HttpRequest) -> HttpResponseBase:
            if ABOUT_ONE.match(request.path_info):
                await sync_to_async(check)(request)
            answer: HttpResponseBase = await get_response(request)
            return answer

        return hide_async

    def hide(request: HttpRequest) -> HttpResponseBase:
        check(request)
        answer: HttpResponseBase = get_response(request)
        return answer

    return hide


def check(request: HttpRequest) -> None:
    """Raises Http404 for what the request's person may not see."""
    about = ABOUT_ONE.match(request.path_info)
    if about is None or not request.user.is_authenticated:
        return
    hidden = hidden_of(request)
    if not hidden:
        return
    try:
        name = resolve(request.path_info).kwargs.get("name")
    except Resolver404:
        return
    if about["what"] == "deployments":
        found = Deployment.objects.filter(name=name, pk__in=hidden.deployments).exists()
    else:
        found = Node.objects.filter(name=name, pk__in=hidden.nodes).exists()
    if found:
        raise Http404(_("There is nothing of this name."))
