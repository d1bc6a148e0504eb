"""The same road for our own pages: a chat with a route, as typed events."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from dashboard.gateway.balance import leading_text
from dashboard.gateway.blocks import Comment, Event
from dashboard.gateway.errors import ApiError
from dashboard.gateway.hold import Request
from dashboard.gateway.passage import Passage
from dashboard.gateway.pieces import (
    Failure,
    Finished,
    ReasoningDelta,
    TextDelta,
    Usage,
    failure_in,
    pieces_in,
    read,
)


class Paused(msgspec.Struct, frozen=True):
    """The model recovers; the answer goes on when it is back."""


class Resumed(msgspec.Struct, frozen=True):
    """It goes on."""


Shown = TextDelta | ReasoningDelta | Finished | Usage
ChatEvent = Shown | Paused | Resumed


def chat_request(route: str, body: dict[str, Any], request_id: str) -> Request:
    """For a streamed answer with its usage all along."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    wanted = {**body, "model": route, "stream": True, "stream_options": options}
    return Request(
        route=route,
        path="/v1/chat/completions",
        body=msgspec.json.encode(wanted),
        stream=True,
        id=request_id,
        key=leading_text(wanted),
    )


async def stream_chat(passage: Passage) -> AsyncGenerator[ChatEvent, None]:
    """The answer of an open passage. Closing the iterator aborts it at the head at once.

    Raises ApiError when the head refuses, or when nobody goes on with it.
    """
    async with aclosing(passage.blocks()) as blocks:
        async for block in blocks:
            if isinstance(block, Event):
                for event in _read(block.data):
                    yield event
            elif (notice := _notice(block)) is not None:
                yield notice


async def open_chat(request: Request) -> Passage:
    """Ask. Raises ApiError when the head refuses, or when there is none."""
    passage = Passage(request)
    try:
        answer = await passage.open()
        if not answer.is_stream:
            raise _refusal(answer.status, await answer.read())
    except BaseException:
        passage.close()
        raise
    return passage


def _notice(comment: Comment) -> Paused | Resumed | None:
    if comment.line == b": paused":
        return Paused()
    return Resumed() if comment.line.startswith(b": resumed") else None


def _read(payload: bytes) -> list[ChatEvent]:
    if payload == b"[DONE]":
        return []
    chat = read(payload)
    if chat.error is not None:
        raise _failure(chat.error, 502)
    return [piece for piece in pieces_in(chat) if isinstance(piece, Shown)]


def _refusal(status: int, body: bytes) -> ApiError:
    return _failure(failure_in(body), status if status >= 400 else 502)


def _failure(error: Failure, status: int) -> ApiError:
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
