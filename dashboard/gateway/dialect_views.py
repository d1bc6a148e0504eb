"""`/v1/responses` and `/v1/messages`: chats, asked and answered in other words."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from dashboard.gateway.budgets.admission import admit
from dashboard.gateway.dialects import road
from dashboard.gateway.dialects.anthropic import translate as anthropic
from dashboard.gateway.dialects.anthropic.reply import MessageReply
from dashboard.gateway.dialects.asked import read_object
from dashboard.gateway.dialects.responses import translate as openai
from dashboard.gateway.dialects.responses.reply import ResponseReply
from dashboard.gateway.dialects.road import Translated
from dashboard.gateway.errors import ApiError
from dashboard.gateway.keys import owner_of
from dashboard.gateway.openapi import document
from dashboard.gateway.opened import close_in_the_end
from dashboard.gateway.passage import Passage
from dashboard.gateway.pieces import refusal
from dashboard.gateway.routes import check_route
from dashboard.gateway.views import MOST_TRACEPARENT, authorization, endpoint, recorded

Json = dict[str, Any]


@endpoint("POST")
async def responses(request: HttpRequest) -> HttpResponseBase:
    return await _answer(request, "/v1/responses", _response_asked)


@endpoint("POST")
async def messages(request: HttpRequest) -> HttpResponseBase:
    return await _answer(request, "/v1/messages", _message_asked)


@endpoint("POST")
async def input_tokens(request: HttpRequest) -> HttpResponseBase:
    def chat(fields: Json) -> Json:
        return openai.prompt_of(openai.read_counted(fields), fields)

    count = await _measured(request, chat)
    return _json({"object": "response.input_tokens", "input_tokens": count})


@endpoint("POST")
async def count_tokens(request: HttpRequest) -> HttpResponseBase:
    def chat(fields: Json) -> Json:
        return anthropic.prompt_of(anthropic.read_counted(fields), fields)

    return _json({"input_tokens": await _measured(request, chat)})


@endpoint("GET", "DELETE")
async def response(request: HttpRequest, name: str) -> HttpResponseBase:
    """Who looks for one is told why there is none."""
    await owner_of(authorization(request))
    text = _("Responses are not kept here (store is false), so there is no “%(name)s”.")
    raise ApiError(text % {"name": name}, status=404, code="response_not_kept")


@endpoint("GET")
async def openapi(request: HttpRequest) -> HttpResponseBase:
    await owner_of(authorization(request))
    return HttpResponse(_document(), content_type="application/json")


@cache
def _document() -> bytes:
    return msgspec.json.encode(document())


def _response_asked(fields: Json, number: str) -> Translated:
    asked = openai.read_asked(fields)
    reply = ResponseReply(number, asked, fields)
    # In a whole answer the scores of thoughts and calls are among those of the text.
    in_chunks = openai.wants_scores(asked)
    return Translated(openai.chat_of(fields, asked), reply, asked.stream is True, in_chunks)


def _message_asked(fields: Json, number: str) -> Translated:
    asked = anthropic.read_asked(fields)
    reply = MessageReply(number, asked.model)
    return Translated(anthropic.chat_of(fields, asked), reply, asked.stream is True)


async def _answer(
    request: HttpRequest, path: str, read: Callable[[Json, str], Translated]
) -> HttpResponseBase:
    number: str = request.META["tandem.request_id"]
    record = recorded(request, path)
    with record.errors():
        owner = await owner_of(authorization(request))
        record.came_from(owner)
        asked = read(read_object(request.body), number.removeprefix("req_"))
        traceparent = request.headers.get("traceparent", "")[:MOST_TRACEPARENT]
        chat = road.chat_request(asked, number, traceparent)
        record.asks(chat)
        await check_route(chat.route, owner.hidden_routes)
        await admit(request, owner, chat, record)
        passage = Passage(chat, record)
        close_in_the_end(request, passage)
        answer = await passage.open()
    if chat.stream and not answer.is_stream:
        found = await passage.whole()
        raise refusal(found.status, found.body)
    if asked.stream:
        return _streamed(road.Retelling(passage, asked.reply))
    return _json(await road.whole(passage, asked.reply))


async def _measured(request: HttpRequest, chat_of: Callable[[Json], Json]) -> int:
    owner = await owner_of(authorization(request))
    chat = chat_of(read_object(request.body))
    await check_route(chat["model"], owner.hidden_routes)
    return await road.measured(chat, request.META["tandem.request_id"])


def _streamed(told: road.Retelling) -> StreamingHttpResponse:
    response = StreamingHttpResponse(told, content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


def _json(value: object) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(value), content_type="application/json")
