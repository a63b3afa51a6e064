"""A local server with the brain's internal API, which fails on demand."""

import contextlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.http_server import HttpServer

SECRET = "a-secret-of-the-brain-for-tests-only"
METRICS = {
    "total_hits": 90,
    "total_misses": 10,
    "hit_ratio": 0.9,
    "bytes_served": 1000,
    "bytes_stored": 500,
    "bytes_capacity": 10_000,
    "object_count": 7,
    "evictions": 1,
    "active_nodes": 2,
    "avg_latency_ms": 1.5,
    "p95_latency_ms": 3.5,
    "p99_latency_ms": 4.5,
    "collected_at": "2026-11-21T10:00:00+00:00",
}
STATUS = {
    "brain_healthy": True,
    "total_nodes": 2,
    "online_nodes": 2,
    "total_cache_bytes": 10_000,
    "used_cache_bytes": 500,
    "hit_ratio": 0.9,
}


@dataclass
class Call:
    """A received call."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass
class ScriptedBrain:
    """Responses by ``method path``; other calls get 404 without a code.

    gate: while it is closed, responses wait for it (a stalled brain).
    cuts: the number of next calls whose connection is cut in the middle of the response.
    """

    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    cuts: int = 0

    def __post_init__(self) -> None:
        self.gate.set()
        self.answers |= {
            "GET /health": (200, {"status": "ok"}),
            "GET /v1/status": (200, STATUS),
            "GET /v1/metrics": (200, METRICS),
        }
        self.server = HttpServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def say(self, call: str, status: int, body: Any) -> None:
        """Set the response to a call."""
        self.answers[call] = (status, body)

    def last(self, method: str) -> Call:
        """Return the latest call with this method."""
        return next(call for call in reversed(self.calls) if call.method == method)

    def close(self) -> None:
        """Stop and free the port."""
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


def _handler(brain: ScriptedBrain) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            body = json.loads(raw) if raw else None
            brain.calls.append(
                Call(self.command, parts.path, query, body, dict(self.headers.items()))
            )
            brain.gate.wait(10)
            known = brain.answers.get(f"{self.command} {parts.path}", (404, {}))
            status, said = known
            if parts.path != "/health" and self.headers["Authorization"] != f"Bearer {SECRET}":
                status, said = 401, {"code": "not_authenticated"}
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            if brain.cuts:
                brain.cuts -= 1
                self.send_header("Content-Length", str(len(data) + 1))
                self.close_connection = True
            elif status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            # A client that timed out has disconnected by now.
            with contextlib.suppress(BrokenPipeError):
                self.wfile.write(b"" if status == 204 else data)

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    for method in ("GET", "POST", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    return Handler
