"""A server that receives webhooks, and misbehaves by path."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

from tests.http_server import HttpServer

# Longer than any test: a slow answer ends when the client or the test does.
STUCK_S = 60


@dataclass
class Message:
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """What came, and how to answer: a status by path, 200 where none is set."""

    port: int = 0
    messages: list[Message] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    go_on: threading.Event = field(default_factory=threading.Event)
    # Where a request to this path lets the slow ones go on.
    releases: str = ""

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """Return the URL of a path."""
        return f"http://{host}:{self.port}{path}"

    def paths(self) -> list[str]:
        """Return the paths that were asked for, in order."""
        return [message.path for message in self.messages]


class Handler(BaseHTTPRequestHandler):
    """Answers as the path says."""

    protocol_version = "HTTP/1.1"
    receiver: ClassVar[Receiver]

    def do_POST(self) -> None:
        """Keep the request, and answer it."""
        receiver = self.receiver
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        receiver.messages.append(Message(self.path, headers, body))
        if self.path == receiver.releases:
            receiver.go_on.set()
        self.close_connection = True
        ways = {"/drip": self._drip, "/flood": self._flood, "/nonsense": self._nonsense}
        if self.path.startswith("/slow"):
            receiver.go_on.wait(STUCK_S)
        ways.get(self.path, self._answer)()

    def _answer(self) -> None:
        status = self.receiver.statuses.get(self.path, 200)
        self.send_response(status)
        if status // 100 == 3:
            self.send_header("Location", self.receiver.url("/elsewhere"))
        # Far more than is sent: a client that waited for it would wait in vain.
        self.send_header("Content-Length", "0" if status != 200 else str(2**40))
        self.end_headers()

    def _drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not self.receiver.go_on.wait(0.05):
            self.wfile.write(b"x")

    def _flood(self) -> None:
        self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000)
        self._answer()

    def _nonsense(self) -> None:
        self.wfile.write(b"\x00\x01 hello\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on a free port."""
    receiver = Receiver()
    handler = type("OwnHandler", (Handler,), {"receiver": receiver})
    server = HttpServer(("127.0.0.1", 0), handler)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
