"""One span for each answer of the gateway, when a collector wants traces. Never any text of it."""

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dashboard.gateway.errors import ApiError
from monitoring.export import otlp

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from dashboard.gateway.hold import Request

OPERATIONS = {"/v1/chat/completions": "chat", "/v1/completions": "text_completion"}


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    model: str | None = None
    choices: list[_Choice] = []
    usage: _Usage | None = None


_chunks: msgspec.json.Decoder[_Chunk] = msgspec.json.Decoder(_Chunk)


class Trace(Protocol):
    """What a passage tells of itself."""

    def taken(self, launch: str) -> None:
        """A head of this launch has it now."""

    def heard(self, data: bytes) -> None:
        """An event of the stream, or the whole answer."""

    def answered(self, status: int) -> None: ...

    def failed(self, error: ApiError) -> None: ...

    def done(self) -> None:
        """All of the answer has come."""

    def end(self) -> None:
        """More than once is once. Not `done` before is that the caller has gone."""


class Untraced:
    """Nobody asked."""

    def taken(self, launch: str) -> None: ...

    def heard(self, data: bytes) -> None: ...

    def answered(self, status: int) -> None: ...

    def failed(self, error: ApiError) -> None: ...

    def done(self) -> None: ...

    def end(self) -> None: ...


class Traced:
    def __init__(self, tracer: "Tracer", request: "Request") -> None:
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        operation = OPERATIONS.get(request.path, "chat")
        parent = {"traceparent": request.traceparent} if request.traceparent else {}
        self._span: Span = tracer.start_span(
            f"{operation} {request.route}",
            context=TraceContextTextMapPropagator().extract(parent),
            kind=SpanKind.SERVER,
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": "tandem",
                "gen_ai.request.model": request.route,
                "tandem.request.id": request.id,
                "tandem.stream": request.stream,
            },
        )
        self._begun = False
        self._reasons: list[str] = []

    def taken(self, launch: str) -> None:
        self._say("tandem.launch", launch)

    def heard(self, data: bytes) -> None:
        if not self._begun:
            self._begun = True
            self._span.add_event("gen_ai.first_chunk")
        if b'"usage"' not in data and b'"finish_reason":"' not in data:
            return
        try:
            chunk = _chunks.decode(data)
        except msgspec.DecodeError:
            return  # Whoever reads the answer says so.
        self._reasons += [c.finish_reason for c in chunk.choices if c.finish_reason]
        usage = chunk.usage or _Usage()
        self._say("gen_ai.response.model", chunk.model)
        self._say("gen_ai.usage.input_tokens", usage.prompt_tokens)
        self._say("gen_ai.usage.output_tokens", usage.completion_tokens)
        self._say("gen_ai.response.finish_reasons", self._reasons or None)

    def answered(self, status: int) -> None:
        self._say("http.response.status_code", status)
        if status >= 400:
            self._fail(str(status), status)

    def failed(self, error: ApiError) -> None:
        self._say("http.response.status_code", error.status)
        self._fail(error.code or str(error.status), error.status)

    def done(self) -> None: ...

    def end(self) -> None:
        if self._span.is_recording():
            self._span.end()

    def _say(self, name: str, value: Any) -> None:
        if value is not None:
            self._span.set_attribute(name, value)

    def _fail(self, kind: str, status: int) -> None:
        """What a caller did wrong is no failure of ours."""
        from opentelemetry.trace import StatusCode

        self._span.set_attribute("error.type", kind)
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)


def begin(request: "Request") -> Trace:
    """Of a new request; who takes a stream up again goes on with what has its span."""
    if not request.path or not otlp.wanted("traces"):
        return Untraced()
    return Traced(_tracer(), request)


@cache
def _tracer() -> "Tracer":
    """Sends spans in batches, from a thread of its own, to what the standard variables name."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from monitoring.export.otlp.resource import resource

    provider = TracerProvider(resource=resource())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("tandem.gateway")
