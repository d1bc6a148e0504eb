"""The head's HTTP: OpenAI's API, health, metrics and statistics."""

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import ParamSpec, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import EngineError, RankError, RequestError
from engine.head.answer import Delta, Generation, Notice
from engine.head.api.metrics import render_metrics
from engine.head.api.preparing import Prepared, Preparer
from engine.head.api.replies import DONE, Json, Reply, error_body, event
from engine.head.api.requests import Asked, read_chat, read_completion
from engine.head.api.streaming import ClientGone, EventStream, until_disconnect
from engine.head.engine import HeadEngine

P = ParamSpec("P")
T = TypeVar("T")

CLIENT_CLOSED = 499
"""What nginx logs for a client that did not wait; nobody reads it."""
MAX_BODY = 16 * 1024 * 1024
LONG_BODY = 20_000
"""Bytes from which reading and tokenizing a request leave the event loop."""


def build_app(engine: HeadEngine) -> Starlette:
    api = Api(engine)
    return Starlette(
        routes=[
            Route("/health", api.health),
            Route("/stats", api.stats),
            Route("/metrics", api.metrics),
            Route("/v1/models", api.models),
            Route("/v1/models/{model:path}", api.model),
            Route("/v1/chat/completions", api.chat, methods=["POST"]),
            Route("/v1/completions", api.completions, methods=["POST"]),
        ],
        middleware=[Middleware(BearerOnly, token=engine.spec.token)],
        exception_handlers={
            EngineError: _refused,
            HTTPException: _no_route,
            ClientDisconnect: _hung_up,
        },
    )


class BearerOnly:
    """Everything but /health needs the launch's token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == "/health" or self._allows(scope):
            await self._app(scope, receive, send)
            return
        refusal = RequestError(
            "This engine needs its launch's token as a bearer token.",
            code="invalid_api_key",
            status=401,
        )
        response = failure(refusal)
        response.headers["WWW-Authenticate"] = "Bearer"
        await response(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        given = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(given, self._expected)


class Api:
    def __init__(self, engine: HeadEngine) -> None:
        self._engine = engine
        self._preparer = Preparer(engine.tokenizer, engine.chat)
        self._started = int(time.time())

    async def health(self, request: Request) -> Response:
        stats = self._engine.stats()
        ranks = [
            {"rank": r.rank, "phase": r.phase, "progress": r.progress, "detail": r.detail}
            for r in stats.ranks
        ]
        body = {"status": stats.status, "detail": str(stats.detail), "ranks": ranks}
        return reply(body, 200 if stats.status == "ready" else 503)

    async def stats(self, request: Request) -> Response:
        return reply(self._engine.stats())

    async def metrics(self, request: Request) -> Response:
        text, content_type = render_metrics(self._engine)
        return Response(text, media_type=content_type)

    async def models(self, request: Request) -> Response:
        return reply({"object": "list", "data": [self._card()]})

    async def model(self, request: Request) -> Response:
        self._check_model(request.path_params["model"])
        return reply(self._card())

    async def chat(self, request: Request) -> Response:
        body = await read_body(request)
        asked = await _offload(len(body) >= LONG_BODY, read_chat, body)
        self._check_model(asked.model)
        slow = len(body) >= LONG_BODY or asked.form is not None or bool(asked.tools.functions)
        prepared = await _offload(slow, self._preparer.chat, asked)
        self._check_length("messages", prepared)
        generation = self._engine.submit(prepared.prompts, prepared.wanted)
        shape = self._preparer.chat_reply(asked, prepared, generation)
        return await self._answer(request, asked, generation, shape)

    async def completions(self, request: Request) -> Response:
        body = await read_body(request)
        asked = await _offload(len(body) >= LONG_BODY, read_completion, body)
        self._check_model(asked.model)
        slow = len(body) >= LONG_BODY or asked.form is not None
        prepared = await _offload(slow, self._preparer.completion, asked)
        self._check_length("prompt", prepared)
        generation = self._engine.submit(prepared.prompts, prepared.wanted)
        shape = self._preparer.completion_reply(asked, generation)
        return await self._answer(request, asked, generation, shape)

    def _card(self) -> Json:
        return {
            "id": self._engine.spec.served_name,
            "object": "model",
            "created": self._started,
            "owned_by": "tandem",
            "max_model_len": self._engine.capacity,
        }

    def _check_model(self, model: str) -> None:
        served = self._engine.spec.served_name
        if model != served:
            raise RequestError(
                f"The model {model!r} does not exist here; this engine serves {served!r}.",
                param="model",
                code="model_not_found",
                status=404,
            )

    async def _answer(
        self, request: Request, asked: Asked, generation: Generation, shape: Reply
    ) -> Response:
        if asked.stream:
            events = _events(asked, generation, shape)
            return EventStream(events, closed=partial(self._engine.abort, generation))
        try:
            return await until_disconnect(request.receive, _whole(generation, shape))
        except ClientGone:
            return Response(status_code=CLIENT_CLOSED)
        finally:
            self._engine.abort(generation)

    def _check_length(self, field: str, prepared: Prepared) -> None:
        """Too long a prompt is one error, too long an answer another; both name the field."""
        limit = self._engine.capacity
        least = prepared.wanted.max_tokens or 1
        for prompt in prepared.prompts:
            if not prompt:
                raise RequestError("The prompt is empty.", param=field)
            if len(prompt) + least > limit:
                raise RequestError(
                    f"This model's maximum context length is {limit} tokens. The prompt has "
                    f"{len(prompt)} and at least {least} more were asked for.",
                    param=field if len(prompt) >= limit else "max_tokens",
                    code="context_length_exceeded",
                )


def _fault(delta: Delta) -> EngineError:
    """Why an answer failed, and whose fault it is."""
    if delta.refused:
        return RequestError(delta.error, code="impossible_form")
    return RankError(delta.error)


async def _whole(generation: Generation, shape: Reply) -> Response:
    async for delta in generation:
        if isinstance(delta, Notice):
            continue
        if delta.finish == "error":
            raise _fault(delta)
        shape.add(delta)
    return reply(shape.whole())


async def _events(asked: Asked, generation: Generation, shape: Reply) -> AsyncIterator[bytes]:
    """One event a step; an error is the last one before the end of the stream."""
    head = b"".join(event(chunk | _usage_so_far(asked, shape)) for chunk in shape.opening())
    async for delta in generation:
        if isinstance(delta, Notice):
            yield f": {delta.kind}\n".encode()
            continue
        if delta.finish == "error":
            yield head + event(error_body(_fault(delta))[1]) + DONE
            return
        yield head + event(shape.chunk(delta) | _usage_so_far(asked, shape))
        head = b""
    if asked.include_usage:
        yield event(shape.closing())
    yield DONE


def _usage_so_far(asked: Asked, shape: Reply) -> Json:
    """What a chunk says of the usage: nothing, or null before the last, or the count so far."""
    if asked.usage_in_chunks:
        return {"usage": shape.usage()}
    return {"usage": None} if asked.include_usage else {}


async def read_body(request: Request) -> bytes:
    """The whole body; raises RequestError when it is too large or the client hangs up."""
    chunks = bytearray()
    async for chunk in request.stream():
        chunks += chunk
        if len(chunks) > MAX_BODY:
            raise RequestError(f"The request is larger than {MAX_BODY} bytes.", status=413)
    return bytes(chunks)


def reply(body: Json | msgspec.Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def failure(error: EngineError) -> Response:
    status, body = error_body(error)
    return reply(body, status)


async def _offload(slow: bool, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call at once, or in a thread so that nobody else waits for it."""
    return await asyncio.to_thread(work, *args, **kwargs) if slow else work(*args, **kwargs)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, EngineError)
    return failure(error)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path} does not exist here."
    return failure(RequestError(message, code="not_found", status=error.status_code))


async def _hung_up(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED)
