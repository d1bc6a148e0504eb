"""The head's HTTP: OpenAI's API, health, metrics and statistics."""

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Callable, Sequence
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
from engine.head.answer import Generation
from engine.head.api.metrics import render_metrics
from engine.head.api.replies import DONE, Json, Kind, Reply, error_body, event
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
        asked = await _offload(len(body), read_chat, body)
        self._check_model(asked.model)
        encode = self._engine.chat.encode
        prompt = await _offload(
            len(body), encode, asked.messages, continue_final=asked.continue_final
        )
        return await self._answer(request, "chat", asked, [prompt])

    async def completions(self, request: Request) -> Response:
        body = await read_body(request)
        asked = await _offload(len(body), read_completion, body)
        self._check_model(asked.model)
        prompts = await _offload(len(body), self._encode_all, asked.prompts)
        return await self._answer(request, "completion", asked, prompts)

    def _encode_all(self, prompts: Sequence[str | list[int]]) -> list[list[int]]:
        tokenizer = self._engine.tokenizer
        encoded: list[list[int]] = []
        for prompt in prompts:
            if isinstance(prompt, str):
                encoded.append(tokenizer.bos_ids + tokenizer.encode_trusted(prompt))
            else:
                tokenizer.check_ids(prompt, "prompt")
                encoded.append(prompt)
        return encoded

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
        self, request: Request, kind: Kind, asked: Asked, prompts: list[list[int]]
    ) -> Response:
        self._check_length(kind, prompts, asked.wanted.max_tokens)
        generation = self._engine.submit(prompts, asked.wanted)
        shape = Reply(kind, asked.model, generation)
        if asked.stream:
            events = self._events(kind, asked, generation, shape)
            return EventStream(events, closed=partial(self._engine.abort, generation))
        try:
            return await until_disconnect(request.receive, self._whole(generation, shape))
        except ClientGone:
            return Response(status_code=CLIENT_CLOSED)
        finally:
            self._engine.abort(generation)

    async def _whole(self, generation: Generation, shape: Reply) -> Response:
        texts: list[list[str]] = [[] for _ in generation.requests]
        finishes: list[str | None] = [None for _ in generation.requests]
        async for delta in generation:
            if delta.finish == "error":
                raise RankError(delta.error)
            texts[delta.index].append(delta.text)
            finishes[delta.index] = delta.finish
        return reply(shape.whole(["".join(pieces) for pieces in texts], finishes))

    async def _events(
        self, kind: Kind, asked: Asked, generation: Generation, shape: Reply
    ) -> AsyncIterator[bytes]:
        """One event a step; an error is the last one before the end of the stream."""
        head = event(shape.opening() | _usage_so_far(asked, shape)) if kind == "chat" else b""
        async for delta in generation:
            if delta.finish == "error":
                yield head + event(error_body(RankError(delta.error))[1]) + DONE
                return
            yield head + event(shape.chunk(delta) | _usage_so_far(asked, shape))
            head = b""
        if asked.include_usage:
            yield event(shape.closing())
        yield DONE

    def _check_length(self, kind: Kind, prompts: list[list[int]], max_tokens: int | None) -> None:
        """Too long a prompt is one error, too long an answer another; both name the field."""
        limit = self._engine.capacity
        field = "messages" if kind == "chat" else "prompt"
        for prompt in prompts:
            if not prompt:
                raise RequestError("The prompt is empty.", param=field)
            asked = len(prompt) + (max_tokens or 1)
            if asked > limit:
                raise RequestError(
                    f"This model's maximum context length is {limit} tokens. The prompt has "
                    f"{len(prompt)} and at least {max_tokens or 1} more were asked for.",
                    param=field if len(prompt) >= limit else "max_tokens",
                    code="context_length_exceeded",
                )


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


async def _offload(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call at once when the request is short, else in a thread."""
    if size < LONG_BODY:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, EngineError)
    return failure(error)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path} does not exist here."
    return failure(RequestError(message, code="not_found", status=error.status_code))


async def _hung_up(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED)
