"""A request of the gateway is one span: what it was about and what it took, never its words."""

import msgspec
import pytest

from dashboard.gateway import trace
from dashboard.gateway.errors import ApiError
from dashboard.gateway.hold import Request
from tests.peers.otlp_collector import Collector, collector, said

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def request(path: str = "/v1/chat/completions", traceparent: str = "") -> Request:
    body = b'{"model": "smol", "messages": [{"role": "user", "content": "a private word"}]}'
    return Request("smol", path, body, stream=True, id="req-7", traceparent=traceparent)


def chunk(**fields: object) -> bytes:
    return msgspec.json.encode({"model": "smol", "choices": [], **fields})


def flush(tracing: trace.Trace) -> None:
    """End it and wait until the collector has it."""
    tracing.end()
    provider = trace._tracer().span_processor  # type: ignore[attr-defined]  # the SDK's own
    provider.force_flush(10_000)
    provider.shutdown()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> object:
    trace._tracer.cache_clear()
    with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{kept.address}/v1/traces")
        yield kept
    trace._tracer.cache_clear()


def test_a_stream_is_told_with_its_tokens_and_without_its_words(kept: Collector) -> None:
    tracing = trace.begin(request(traceparent=PARENT))
    tracing.answered(200)
    tracing.heard(chunk(choices=[{"delta": {"content": "an answer's secret"}}]))
    tracing.heard(chunk(choices=[{"delta": {}, "finish_reason": "stop"}]))
    tracing.heard(chunk(usage={"prompt_tokens": 12, "completion_tokens": 34}))
    flush(tracing)
    (span,) = kept.spans
    assert span.name == "chat smol"
    assert span.trace_id.hex() == PARENT.split("-")[1]
    assert span.parent_span_id.hex() == PARENT.split("-")[2]
    assert [event.name for event in span.events] == ["gen_ai.first_chunk"]
    assert said(list(span.attributes)) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "tandem",
        "gen_ai.request.model": "smol",
        "gen_ai.response.model": "smol",
        "gen_ai.response.finish_reasons": "stop",
        "gen_ai.usage.input_tokens": "12",
        "gen_ai.usage.output_tokens": "34",
        "http.response.status_code": "200",
        "tandem.request.id": "req-7",
        "tandem.stream": "True",
    }
    assert not any(b"secret" in body or b"private" in body for body in kept.raw)


def test_a_failure_of_ours_is_an_error_and_a_callers_is_not(kept: Collector) -> None:
    for status, code in ((502, "upstream_failed"), (404, "model_not_found")):
        tracing = trace.begin(request("/v1/completions"))
        tracing.failed(ApiError("no words", status=status, code=code))
        tracing.end()
    flush(tracing)
    ours, theirs = kept.spans
    assert (ours.name, ours.status.code) == ("text_completion smol", 2)
    assert said(list(ours.attributes))["error.type"] == "upstream_failed"
    assert theirs.status.code == 0
    assert said(list(theirs.attributes))["http.response.status_code"] == "404"


def test_without_a_collector_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert isinstance(trace.begin(request()), trace.Untraced)
