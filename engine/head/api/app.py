"""The head's HTTP: OpenAI's API, health, metrics and statistics."""

import hmac
import time
from collections.abc import Sequence
from functools import partial

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import EngineError, RequestError
from engine.head.answer import Notice
from engine.head.api.exchange import Exchange, Telling, fault
from engine.head.api.limits import HeadLimits, read_limits
from engine.head.api.marks import read_counts
from engine.head.api.metrics import render_metrics
from engine.head.api.opening import CHAT, COMPLETIONS, TOKENIZE, Opener
from engine.head.api.replies import Json, error_body
from engine.head.api.resuming import read_resumption
from engine.head.api.streaming import ClientGone, EventStream, until_disconnect
from engine.head.api.streams import Streams, unknown_stream
from engine.head.engine import HeadEngine
from engine.logs import request_id

MAX_LIMITS = 4096
CLIENT_CLOSED = 499
"""What nginx logs for a client that did not wait; nobody reads it."""
MAX_BODY = 16 * 1024 * 1024
MAX_RESUMPTION = 4 * MAX_BODY
"""The request again, and all that was answered."""


def build_app(engine: HeadEngine) -> Starlette:
    api = Api(engine)
    return Starlette(
        routes=[
            Route("/health", api.health),
            Route("/stats", api.stats),
            Route("/limits", api.limits, methods=["PUT"]),
            Route("/metrics", api.metrics),
            Route("/v1/models", api.models),
            Route("/v1/models/{model:path}", api.model),
            Route(CHAT, api.ask, methods=["POST"]),
            Route(COMPLETIONS, api.ask, methods=["POST"]),
            Route(TOKENIZE, api.tokenize, methods=["POST"]),
            Route("/resume", api.resume, methods=["POST"]),
            Route("/streams/{stream}", api.attach, methods=["GET"]),
            Route("/streams/{stream}", api.drop, methods=["DELETE"]),
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
        self._opener = Opener(engine)
        self._streams = Streams(engine.abort)
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

    async def limits(self, request: Request) -> Response:
        """Hold the batch cap down, or lift that, and take new limits; answers what the cap is."""
        wanted = read_limits(await read_body(request, MAX_LIMITS))
        if wanted.batch_rows is not msgspec.UNSET:
            self._engine.hold_batch(wanted.batch_rows)
        self._engine.set_limits(wanted.target_itl, wanted.max_waiting)
        return reply(HeadLimits(self._engine.scheduler.cap.rows))

    async def metrics(self, request: Request) -> Response:
        text, content_type = render_metrics(self._engine)
        return Response(text, media_type=content_type)

    async def models(self, request: Request) -> Response:
        return reply({"object": "list", "data": [self._card()]})

    async def model(self, request: Request) -> Response:
        self._opener.check_model(request.path_params["model"])
        return reply(self._card())

    async def ask(self, request: Request) -> Response:
        """Both of OpenAI's endpoints."""
        request_id.set(request.headers.get("X-Request-Id", ""))
        payload = await read_body(request)
        exchange = await self._opener.open(request.url.path, payload)
        if (stream := _stream_of(request)) is not None:
            self._streams.keep(stream, exchange)
            return self._tell(request, stream, exchange)
        generation = exchange.generation
        if exchange.asked.stream:
            events = Telling(exchange, None).chunks()
            return EventStream(events, closed=partial(self._engine.abort, generation))
        try:
            return await until_disconnect(request.receive, _whole(exchange))
        except ClientGone:
            return Response(status_code=CLIENT_CLOSED)
        finally:
            self._engine.abort(generation)

    async def tokenize(self, request: Request) -> Response:
        """How long a chat's prompt is; nothing is computed."""
        return reply(await self._opener.measure(await read_body(request)))

    async def resume(self, request: Request) -> Response:
        """An answer that began at another head; or here, on a connection that is no more."""
        stream = _stream_of(request)
        request_id.set(stream or "")
        if stream is None:
            raise RequestError("Only a gateway resumes; X-Tandem-Journal and X-Request-Id lack.")
        resumed = read_resumption(await read_body(request, MAX_RESUMPTION))
        exchange = self._streams.find(stream)
        if exchange is None or exchange.origin != resumed.origin or self._opener.over():
            exchange = await self._opener.reopen(resumed)
            self._streams.keep(stream, exchange)
        return self._tell(request, stream, exchange, resumed.sent)

    async def attach(self, request: Request) -> Response:
        """A stream again, whose reader is gone: all of it, or what comes behind `sent`."""
        stream = request.path_params["stream"]
        exchange = self._streams.find(stream)
        if exchange is None:
            raise unknown_stream()
        try:
            sent = read_counts(request.query_params.get("sent", ""))
        except ValueError as error:
            raise RequestError("sent takes counts with commas between them.") from error
        if "orphan" in request.query_params and self._streams.has_reader(stream):
            raise RequestError("Somebody reads this stream.", code="stream_in_use", status=409)
        return self._tell(request, stream, exchange, sent, again=True)

    async def drop(self, request: Request) -> Response:
        if not self._streams.give_up(request.path_params["stream"], _reader_of(request)):
            raise unknown_stream()
        return Response(status_code=204)

    def _tell(
        self,
        request: Request,
        stream: str,
        exchange: Exchange,
        sent: Sequence[int] = (),
        *,
        again: bool = False,
    ) -> Response:
        """`again`: to somebody who does not know what was asked."""
        telling = Telling(exchange, exchange.marks(again=again), sent)
        events = telling.chunks() if exchange.asked.stream else telling.whole()
        closed = self._streams.enter(stream, _reader_of(request))
        return EventStream(events, closed, X_Tandem_Journal="1")

    def _card(self) -> Json:
        return {
            "id": self._engine.spec.served_name,
            "object": "model",
            "created": self._started,
            "owned_by": "tandem",
            "max_model_len": self._engine.capacity,
        }


async def _whole(exchange: Exchange) -> Response:
    shape = exchange.shape()
    async for news in exchange.generation:
        if isinstance(news, Notice):
            continue
        if news.finish == "error":
            raise fault(news)
        shape.add(news)
    return reply(shape.whole())


def _stream_of(request: Request) -> str | None:
    """The id under which a gateway can have the answer continued; None for anybody else."""
    if request.headers.get("X-Tandem-Journal") != "1":
        return None
    return request.headers.get("X-Request-Id") or None


def _reader_of(request: Request) -> str:
    """What a gateway calls itself for one caller."""
    return request.headers.get("X-Tandem-Reader", "")


async def read_body(request: Request, limit: int = MAX_BODY) -> bytes:
    """The whole body; raises RequestError when it is too large or the client hangs up."""
    chunks = bytearray()
    async for chunk in request.stream():
        chunks += chunk
        if len(chunks) > limit:
            raise RequestError(f"The request is larger than {limit} bytes.", status=413)
    return bytes(chunks)


def reply(body: Json | msgspec.Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def failure(error: EngineError) -> Response:
    status, body = error_body(error)
    return reply(body, status)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, EngineError)
    return failure(error)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path} does not exist here."
    return failure(RequestError(message, code="not_found", status=error.status_code))


async def _hung_up(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED)
