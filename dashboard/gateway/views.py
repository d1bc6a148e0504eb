"""`/v1`: the public API. No cookies, no CSRF: a key in a header or nothing."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from dashboard.gateway import ids
from dashboard.gateway.balance import leading_text
from dashboard.gateway.budgets.admission import HEADER, META, admit
from dashboard.gateway.dialects.anthropic import models as anthropic_models
from dashboard.gateway.dialects.spoken import error_response, is_anthropic
from dashboard.gateway.errors import ApiError
from dashboard.gateway.hold import Request
from dashboard.gateway.keys import authenticate, owner_of
from dashboard.gateway.opened import close_in_the_end
from dashboard.gateway.passage import Passage
from dashboard.gateway.patience import patiently
from dashboard.gateway.reconnect import reconnected
from dashboard.gateway.record import Record
from dashboard.gateway.routes import check_route, find_deployment, offered
from dashboard.gateway.stream import Relay, read_counts
from dashboard.models import ApiKey, Deployment
from engine.logs import request_id

MOST_TRACEPARENT = 128
PASSED_HEADERS = ("Retry-After", "Cache-Control")
View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def endpoint(*methods: str) -> Callable[[View], View]:
    """An API view: its methods, its errors in the caller's dialect, its request id."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        async def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            request.META["tandem.request_id"] = ids.new_number()
            request_id.set(request.META["tandem.request_id"])
            response: HttpResponseBase
            try:
                if methods and request.method not in methods:
                    raise _wrong_method(request, methods)
                response = await view(request, *args, **kwargs)
            except ApiError as error:
                response = error_response(error, request.path, request.headers)
            if methods and response.status_code == 405:
                response["Allow"] = ", ".join(methods)
            response.setdefault("X-Request-Id", request.META["tandem.request_id"])
            if META in request.META:
                response[HEADER] = request.META[META]
            if is_anthropic(request.path, request.headers):
                response["request-id"] = response["X-Request-Id"]
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
    if is_anthropic(request.path, request.headers):
        return await patiently(_page_of_models, authorization(request), request.GET.dict())
    return await patiently(_list_models, authorization(request))


@endpoint("GET")
async def model(request: HttpRequest, name: str) -> HttpResponseBase:
    anthropic = is_anthropic(request.path, request.headers)
    return await patiently(_show_model, authorization(request), name, anthropic=anthropic)


@endpoint("GET")
async def stream(request: HttpRequest, stream: str) -> HttpResponseBase:
    """An answer whose connection broke, from behind the event that came last."""
    record = recorded(request, "/v1/streams")
    with record.errors():
        owner = await owner_of(authorization(request))
        record.came_from(owner)
        sent = _sent(request)
        passage, number = await reconnected(stream, owner, record)
    close_in_the_end(request, passage)
    request.META["tandem.request_id"] = number
    record.asks(passage.request)
    return _streamed(Relay(passage, sent), stream)


def _sent(request: HttpRequest) -> list[int]:
    last = request.headers.get("Last-Event-ID", "")
    try:
        return read_counts(last) if last else []
    except ValueError as error:
        text = _("Last-Event-ID must be the id of an event of this stream.")
        raise ApiError(text, status=400, code="invalid_event_id") from error


def recorded(request: HttpRequest, endpoint: str) -> Record:
    record = Record(request.META["tandem.request_id"], endpoint)
    close_in_the_end(request, record)
    return record


def authorization(request: HttpRequest) -> str:
    """As an Authorization header, also where the key came in Anthropic's."""
    given: str = request.headers.get("Authorization", "")
    key: str = request.headers.get("x-api-key", "")
    return given or (f"Bearer {key}" if key else "")


def _list_models(authorization: str) -> HttpResponse:
    hidden = authenticate(authorization, "reads").hidden_routes
    return _json({"object": "list", "data": [_described(entry) for entry in offered(hidden)]})


def _page_of_models(authorization: str, asked: dict[str, str]) -> HttpResponse:
    hidden = authenticate(authorization, "reads").hidden_routes
    known = [anthropic_models.described(entry) for entry in offered(hidden)]
    return _json(anthropic_models.page(known, asked))


def _show_model(authorization: str, name: str, *, anthropic: bool) -> HttpResponse:
    hidden = authenticate(authorization, "reads").hidden_routes
    describe = anthropic_models.described if anthropic else _described
    return _json(describe(find_deployment(name, hidden)))


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
    record = recorded(request, path)
    with record.errors():
        owner = await owner_of(authorization(request))
        record.came_from(owner)
        asked = _read(request, path)
        record.asks(asked)
        await check_route(asked.route, owner.hidden_routes)
        await admit(request, owner, asked, record)
        passage = Passage(asked, record)
        close_in_the_end(request, passage)
        answer = await passage.open()
    if asked.stream and answer.is_stream:
        return _streamed(Relay(passage), _stream_id(asked, passage, owner))
    whole = await passage.whole()
    content_type = whole.headers.get("Content-Type", "application/json")
    response = HttpResponse(whole.body, status=whole.status, content_type=content_type)
    for header in PASSED_HEADERS:
        if header in whole.headers:
            response[header] = whole.headers[header]
    return response


def _stream_id(asked: Request, passage: Passage, owner: ApiKey) -> str:
    return ids.sign(ids.StreamId(asked.id, passage.launch, owner.pk))


def _read(request: HttpRequest, path: str) -> Request:
    """The only fields the gateway needs; the head judges all others."""
    body = request.body
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
    return Request(
        route=name,
        path=path,
        body=body,
        stream=fields.get("stream") is True,
        id=request.META["tandem.request_id"],
        key=leading_text(fields),
        traceparent=request.headers.get("traceparent", "")[:MOST_TRACEPARENT],
    )


def _streamed(relay: Relay, stream: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(relay, content_type="text/event-stream")
    response["X-Request-Id"] = stream
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response
