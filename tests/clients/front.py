"""A proxy in front of a platform that does to some requests what networks and full servers do."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from tests.http_server import HttpServer
from tests.waiting import LIMIT_S

# Requests that are not forwarded: POST /_front/lose and the like.
CONTROL = "/_front/"
HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "host"})


@dataclass
class Front:
    """Forwards to a platform; ``faults`` are used up by the next requests, one each.

    seen: (method, path) of every request. headers, query: of the last one.
    """

    platform: str
    url: str = ""
    faults: list[Callable[["Forwarding"], None]] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""

    def refuse(self, status: int, code: str, **headers: str) -> None:
        """Answer the next request with a problem document; it does not reach the platform."""
        body = {"type": "about:blank", "title": "No.", "status": status, "code": code}
        self.faults.append(lambda one: one.answer(status, json.dumps(body).encode(), headers))

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        """Answer the next request with something that is no problem document."""
        self.faults.append(lambda one: one.answer(status, body, headers))

    def lose(self) -> None:
        """Forward the next request, and close its connection in place of an answer."""
        self.faults.append(lambda one: one.forward(keep=0))

    def hold(self) -> None:
        """Answer the next request never, until its client has closed."""
        self.faults.append(lambda one: one.wait())

    def cut(self, after_bytes: int) -> None:
        """Forward the next request, and close its connection within the answer's body."""
        self.faults.append(lambda one: one.forward(keep=after_bytes))


class Forwarding(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    front: Front

    def handle_one(self) -> None:
        """Forward, or do what the next fault says."""
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith(CONTROL):
            self.control(*self.path.removeprefix(CONTROL).split("/"))
            return
        self.front.seen.append((self.command, urlsplit(self.path).path))
        self.front.headers = dict(self.headers.items())
        self.front.query = urlsplit(self.path).query
        if self.front.faults:
            self.front.faults.pop(0)(self)
        else:
            self.forward()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815 - http.server's

    def control(self, order: str, *values: str) -> None:
        """Prepare faults for a test in another language."""
        front = self.front
        shown = [" ".join(each) for each in front.seen]
        if order == "refuse":
            status, code, after = values
            front.refuse(int(status), code, **({"Retry_After": after} if after else {}))
        elif order == "answer":
            status, after = values
            front.answer(int(status), b"<html>", **({"Retry_After": after} if after else {}))
        elif order == "redirect":
            front.answer(302, b"", Location="https://evil.example.com/")
        elif order == "cut":
            front.cut(int(values[0]))
        elif order == "reset":
            front.faults.clear()
            front.seen.clear()
        elif order != "seen":
            {"lose": front.lose, "hold": front.hold}[order]()
        self.answer(200, json.dumps(shown).encode(), {"Content-Type": "application/json"})

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Answer without the platform."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def wait(self) -> None:
        """Read until the client closes."""
        self.rfile.read(1)
        self.close_connection = True

    def forward(self, *, keep: int | None = None) -> None:
        """Pass an answer on; keep: only so many bytes of its body, or nothing at all."""
        address = urlsplit(self.front.platform)
        assert address.hostname is not None
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=LIMIT_S)
        headers = {name: each for name, each in self.headers.items() if name.lower() not in HOP}
        connection.request(self.command, self.path, self.body, headers)
        answer = connection.getresponse()
        try:
            self._pass_on(answer, keep)
        finally:
            connection.close()

    def _pass_on(self, answer: http.client.HTTPResponse, keep: int | None) -> None:
        if keep == 0:
            answer.read()
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP | {"content-length"}:
                self.send_header(name, value)
        if answer.status == HTTPStatus.NO_CONTENT:
            self.end_headers()
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in iter(lambda: answer.read1(2**16), b""):
            sent = piece if keep is None else piece[:keep]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(sent), sent))
            if keep is not None:
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_arguments: Any) -> None:
        """Print nothing."""


@contextmanager
def fronting(platform: str) -> Iterator[Front]:
    """Yield a proxy in front of a platform."""
    front = Front(platform)
    handler = type("FrontForwarding", (Forwarding,), {"front": front})
    with HttpServer(("127.0.0.1", 0), handler) as server:
        front.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield front
        server.shutdown()
        thread.join()
