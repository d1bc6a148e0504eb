"""A collector of OpenTelemetry on the loopback: takes OTLP over HTTP and keeps it."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    def __init__(self) -> None:
        self.address = ""
        self.raw: list[bytes] = []
        self.service = ""
        self.metrics: dict[str, Metric] = {}
        self.spans: list[Span] = []

    def take(self, path: str, body: bytes) -> None:
        self.raw.append(body)
        if path == "/v1/metrics":
            told = ExportMetricsServiceRequest.FromString(body)
            for resource in told.resource_metrics:
                self.service = said(resource.resource.attributes)["service.name"]
                for scope in resource.scope_metrics:
                    self.metrics |= {metric.name: metric for metric in scope.metrics}
        elif path == "/v1/traces":
            for spans in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.service = said(spans.resource.attributes)["service.name"]
                self.spans += [span for scope in spans.scope_spans for span in scope.spans]


def said(attributes: "Iterator[KeyValue] | list[KeyValue]") -> dict[str, str]:
    """Attributes as text, lists with commas."""
    found = {}
    for pair in attributes:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind or "string_value")
        if kind == "array_value":
            value = ",".join(item.string_value for item in value.values)
        found[pair.key] = str(value)
    return found


@contextmanager
def collector() -> Iterator[Collector]:
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            kept.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    kept.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10.0)
