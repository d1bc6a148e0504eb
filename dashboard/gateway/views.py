"""`/v1`: the public API. No cookies, no CSRF: a key in the Authorization header or nothing."""

import uuid
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import msgspec
from channels.db import database_sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from dashboard.gateway.errors import ApiError
from dashboard.gateway.keys import authenticate
from dashboard.gateway.opened import close_in_the_end
from dashboard.gateway.routes import find_deployment, find_target, offered
from dashboard.gateway.stream import Relay
from dashboard.gateway.upstream import ask
from dashboard.models import Deployment

PASSED_HEADERS = ("Retry-After", "Cache-Control")
View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def endpoint(*methods: str) -> Callable[[View], View]:
    """An API view: its methods, its errors in OpenAI's shape, its request id."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        async def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            request_id = f"req_{uuid.uuid4().hex}"
            request.META["tandem.request_id"] = request_id
            response: HttpResponseBase
            try:
                if methods and request.method not in methods:
                    raise _wrong_method(request, methods)
                response = await view(request, *args, **kwargs)
            except ApiError as error:
                response = error.response()
            if methods and response.status_code == 405:
                response["Allow"] = ", ".join(methods)
            response["X-Request-Id"] = request_id
            return response

        return wrapped

    return decorate


def _wrong_method(request: HttpRequest, methods: tuple[str, ...]) -> ApiError:
    text = _("%(path)s takes %(methods)s, not %(method)s.")
    words = {"path": request.path, "methods": ", ".join(methods), "method": request.method}
    return ApiError(text % words, status=405, code="method_not_allowed")


@endpoint()
async def unknown(request: HttpRequest) -> HttpResponseBase:
    text = _("There is nothing at %(method)s %(path)s.")
    words = {"method": request.method, "path": request.path}
    raise ApiError(text % words, status=404, code="unknown_url")


@endpoint("POST")
async def chat_completions(request: HttpRequest) -> HttpResponseBase:
    return await _forward(request, "/v1/chat/completions")


@endpoint("POST")
async def completions(request: HttpRequest) -> HttpResponseBase:
    return await _forward(request, "/v1/completions")


@endpoint("GET")
async def models(request: HttpRequest) -> HttpResponseBase:
    response: HttpResponse = await database_sync_to_async(_list_models)(_authorization(request))
    return response


@endpoint("GET")
async def model(request: HttpRequest, name: str) -> HttpResponseBase:
    show = database_sync_to_async(_show_model)
    response: HttpResponse = await show(_authorization(request), name)
    return response


def _authorization(request: HttpRequest) -> str:
    return request.headers.get("Authorization", "")


def _list_models(authorization: str) -> HttpResponse:
    authenticate(authorization)
    return _json({"object": "list", "data": [_described(entry) for entry in offered()]})


def _show_model(authorization: str, name: str) -> HttpResponse:
    authenticate(authorization)
    return _json(_described(find_deployment(name)))


def _described(deployment: Deployment) -> dict[str, Any]:
    """OpenAI's model object, with what a caller would otherwise have to guess."""
    shape = deployment.model.shape
    return {
        "id": deployment.name,
        "object": "model",
        "created": int((deployment.ready_at or deployment.created).timestamp()),
        "owned_by": "tandem",
        "root": deployment.model.name,
        "max_model_len": deployment.max_model_len or shape.context_length,
        "status": deployment.status,
    }


def _json(value: object) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(value), content_type="application/json")


async def _forward(request: HttpRequest, path: str) -> HttpResponseBase:
    await database_sync_to_async(authenticate)(_authorization(request))
    body = request.body
    name, stream = _read(body)
    target = await database_sync_to_async(find_target)(name)
    request_id = request.META["tandem.request_id"]
    answer = await ask(target, path, body, stream=stream, request_id=request_id)
    close_in_the_end(request, answer)
    if answer.is_stream:
        return _streamed(Relay(target, answer))
    response = HttpResponse(
        await answer.read(),
        status=answer.status,
        content_type=answer.headers.get("Content-Type", "application/json"),
    )
    for header in PASSED_HEADERS:
        if header in answer.headers:
            response[header] = answer.headers[header]
    return response


def _read(body: bytes) -> tuple[str, bool]:
    """The only fields the gateway needs, route and streaming; the head judges all others."""
    try:
        fields = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        text = _("The body is not JSON: %(error)s.") % {"error": str(error)}
        raise ApiError(text, status=400, code="invalid_json") from error
    except RecursionError as error:
        text = _("The body is nested too deeply.")
        raise ApiError(text, status=400, code="invalid_json") from error
    if not isinstance(fields, dict):
        raise ApiError(_("The body must be a JSON object."), status=400, code="invalid_json")
    name = fields.get("model")
    if not isinstance(name, str) or not name:
        text = _("`model` must name a deployment; GET /v1/models lists them.")
        raise ApiError(text, status=400, code="missing_model", param="model")
    return name, fields.get("stream") is True


def _streamed(relay: Relay) -> StreamingHttpResponse:
    response = StreamingHttpResponse(relay, content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response
