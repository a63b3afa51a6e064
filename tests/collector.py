"""A collector of traces: a local server that takes OTLP over HTTP."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from common import tracing
from tests.http_server import HttpServer
from tests.waiting import wait_until


@dataclass
class Collector:
    """What arrived. raw: the messages as bytes, in which no secret may be."""

    url: str = ""
    raw: bytes = b""
    spans: list[tuple[str, Span]] = field(default_factory=list)

    def take(self, message: bytes) -> None:
        """Add a message's spans, each with the name of its service."""
        self.raw += message
        for resource in ExportTraceServiceRequest.FromString(message).resource_spans:
            (service,) = [
                each.value.string_value
                for each in resource.resource.attributes
                if each.key == "service.name"
            ]
            for scope in resource.scope_spans:
                self.spans += [(service, span) for span in scope.spans]

    def named(self, name: str) -> list[Span]:
        """Return the spans of this name."""
        return [span for _, span in list(self.spans) if span.name == name]

    def wait_for(self, name: str) -> Span:
        """Wait for a span of this name; return the last one."""
        wait_until(lambda: self.named(name))
        return self.named(name)[-1]

    def child_of(self, parent: Span, name: str) -> Span:
        """Wait for a span of this name within another; return it."""
        wait_until(lambda: [each for each in self.named(name) if _is_child(each, parent)])
        return next(each for each in self.named(name) if _is_child(each, parent))

    def parent_of(self, span: Span) -> Span:
        """Wait for the span around another; return it."""

        def found() -> list[Span]:
            return [each for _, each in list(self.spans) if each.span_id == span.parent_span_id]

        wait_until(found)
        return found()[0]

    def service_of(self, span: Span) -> str:
        """Return the name of the service that sent a span."""
        return next(service for service, each in self.spans if each.span_id == span.span_id)


def _is_child(span: Span, parent: Span) -> bool:
    return (span.trace_id, span.parent_span_id) == (parent.trace_id, parent.span_id)


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector."""
    seen = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                seen.take(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Stay quiet."""

    with HttpServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        seen.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield seen
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def traced() -> Iterator[Collector]:
    """Run a collector, and send it the spans of this process."""
    with collecting() as seen:
        tracing.start("zonal-web", seen.url, 1.0)
        try:
            yield seen
        finally:
            tracing.stop()
