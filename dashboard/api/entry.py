"""Who asks, what they sent, and errors as JSON."""

import json
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from dashboard.access import may
from dashboard.audit import Actor, actor_of
from dashboard.choices import Role
from dashboard.configuration.declared import SettingsRefused
from dashboard.errors import StatusConflict
from dashboard.gateway.errors import ApiError
from dashboard.gateway.keys import authenticate
from dashboard.identity.teams import check
from dashboard.texts import can_be_kept

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
MOST_BYTES = 1 << 20
READING = ("GET", "HEAD")


class Refusal(Exception):
    """An answer that says no."""

    def __init__(self, status: int, message: str, fields: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.fields = status, message, fields or {}


def entry(
    reading: Role, writing: Role = Role.OPERATOR, methods: tuple[str, ...] = READING
) -> Callable[[View[P]], View[P]]:
    """The view answers those roles: by an API key that may change configuration, or, to read, by
    the session of the panel."""

    def wrap(view: View[P]) -> View[P]:
        @csrf_exempt
        @never_cache
        @wraps(view)
        def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            with override(_language(request)):
                try:
                    if request.method not in methods:
                        raise Refusal(405, _("This address takes %s.") % ", ".join(methods))
                    _check(request, reading if request.method in READING else writing)
                    check(request)
                    return view(request, *args, **kwargs)
                except REFUSALS as error:
                    return _refused(error)

        return answer

    return wrap


REFUSALS = (Refusal, SettingsRefused, StatusConflict, ApiError, Http404)


def _refused(error: Exception) -> HttpResponse:
    match error:
        case Refusal():
            return _told(error.status, error.message, error.fields)
        case SettingsRefused():
            fields = {name: str(sentence) for name, sentence in error.errors.items()}
            return _told(422, str(error), fields)
        case StatusConflict():
            return _told(409, str(error))
        case ApiError():
            return _told(error.status, str(error))
    return _told(404, _("There is nothing of this name."))


def _check(request: HttpRequest, role: Role) -> None:
    header = request.headers.get("Authorization", "")
    if header:
        key = authenticate(header, scope="")
        if not key.manages:
            raise Refusal(
                403, _("This key only asks for answers. Make one that may change things.")
            )
        request.user = key.user
    elif request.method not in READING:
        raise Refusal(401, _("Changes need an API key: Authorization: Bearer KEY."))
    elif not request.user.is_authenticated:
        raise Refusal(401, _("Send an API key: Authorization: Bearer KEY."))
    if not may(request.user, role):
        raise Refusal(403, _("The owner of this key may not do this."))


def _language(request: HttpRequest) -> str:
    """`?language=`, else what the header asks for."""
    asked = request.GET.get("language", "")
    return asked if asked in dict(settings.LANGUAGES) else get_language() or settings.LANGUAGE_CODE


def _told(status: int, message: str, fields: dict[str, str] | None = None) -> HttpResponse:
    error: dict[str, object] = {"message": message}
    if fields:
        error["fields"] = fields
    return JsonResponse({"error": error}, status=status)


def body_of(request: HttpRequest) -> dict[str, Any]:
    """A JSON object. Raises Refusal."""
    if len(request.body) > MOST_BYTES:
        raise Refusal(413, _("The body is larger than 1 MB."))
    try:
        body = json.loads(request.body or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refusal(400, _("The body is not valid JSON: %s") % error) from error
    if not isinstance(body, dict):
        raise Refusal(400, _("The body must be a JSON object."))
    if not all(can_be_kept(text) for text in _texts(body)):
        raise Refusal(400, _("The body holds a null character, or half of a surrogate pair."))
    return body


def _texts(body: dict[str, Any]) -> Iterator[str]:
    """All in it, at whatever depth."""
    left: list[Any] = [body]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value


def settings_in(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """`{"settings": {...}, "why": "..."}`. Raises Refusal."""
    values, why = body.get("settings", {}), body.get("why", "")
    if not isinstance(values, dict) or not isinstance(why, str):
        raise Refusal(400, _("`settings` must be an object and `why` a text."))
    return values, why


def actor(request: HttpRequest) -> Actor:
    return actor_of(request, "api")


def asked(request: HttpRequest, name: str, *, default: bool) -> bool:
    """A yes or no of the address. Raises Refusal."""
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    value = request.GET.get(name)
    if value is None:
        return default
    if value.lower() not in words:
        raise Refusal(400, _("`%(name)s` is either 1 or 0.") % {"name": name})
    return words[value.lower()]
