"""The same road for our own pages: a chat with a route, as typed events."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError
from dashboard.gateway.routes import Target
from dashboard.gateway.stream import EventReader
from dashboard.gateway.upstream import Answer, asking, broken


class TextDelta(msgspec.Struct, frozen=True):
    """More of the answer."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    """More of what the model thinks before it answers."""

    text: str


class Finished(msgspec.Struct, frozen=True):
    """Why the answer ended: OpenAI's `finish_reason`."""

    reason: str


class Usage(msgspec.Struct, frozen=True):
    """Tokens so far, as the engine counted them."""

    prompt_tokens: int
    completion_tokens: int


ChatEvent = TextDelta | ReasoningDelta | Finished | Usage


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _Failure(msgspec.Struct):
    message: str = ""
    code: str | int | None = None
    param: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Usage | None = None
    error: _Failure | None = None


_chunks: msgspec.json.Decoder[_Chunk] = msgspec.json.Decoder(_Chunk)


async def stream_chat(
    target: Target, body: dict[str, Any], *, request_id: str
) -> AsyncGenerator[ChatEvent, None]:
    """Ask for a streamed answer. Closing the iterator aborts the request at the head at once.

    Raises ApiError when the head refuses, fails or goes away.
    """
    options = {"include_usage": True, "continuous_usage_stats": True}
    wanted = {**body, "stream": True, "stream_options": options}
    payload = msgspec.json.encode(wanted)
    async with asking(target, "/v1/chat/completions", payload, request_id=request_id) as answer:
        if not answer.is_stream:
            raise _refusal(answer.status, await answer.read())
        async for event in _events(target, answer):
            yield event


async def _events(target: Target, answer: Answer) -> AsyncGenerator[ChatEvent, None]:
    reader = EventReader()
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            for payload in reader.feed(chunk):
                if payload == b"[DONE]":
                    return
                for event in _read(target, payload):
                    yield event
    raise broken(target, "the stream ended without [DONE]")


def _read(target: Target, payload: bytes) -> list[ChatEvent]:
    try:
        chunk = _chunks.decode(payload)
    except msgspec.DecodeError as error:
        raise broken(target, error) from error
    if chunk.error is not None:
        raise _failure(chunk.error, 502)
    events: list[ChatEvent] = []
    for choice in chunk.choices[:1]:
        if choice.delta.reasoning_content:
            events.append(ReasoningDelta(choice.delta.reasoning_content))
        if choice.delta.content:
            events.append(TextDelta(choice.delta.content))
        if choice.finish_reason:
            events.append(Finished(choice.finish_reason))
    if chunk.usage is not None:
        events.append(chunk.usage)
    return events


def _refusal(status: int, body: bytes) -> ApiError:
    try:
        error = _chunks.decode(body).error
    except msgspec.DecodeError:
        error = None
    return _failure(error or _Failure(), status if status >= 400 else 502)


def _failure(error: _Failure, status: int) -> ApiError:
    code = str(error.code or "")
    return ApiError(_explain(error.message, code), status=status, code=code, param=error.param)


def _explain(message: str, code: str) -> str:
    """Engines answer programs, in English; what a person is likely to meet is said to a person."""
    match code:
        case "context_length_exceeded":
            return _(
                "This conversation and the answer asked for are longer than the model's context. "
                "Ask for a shorter answer or begin a new conversation."
            )
        case "no_chat_template":
            return _(
                "This model has no chat template: it was made to continue a text, not to talk. "
                "Programs reach it at /v1/completions."
            )
        case "queue_full":
            return _("Too many questions are waiting for this model; try again in a moment.")
        case "engine_error":
            return _("The engine could not finish this answer: %(reason)s") % {"reason": message}
    return message or _("The engine refused without a reason.")
