"""A brain with two workers, with an HTTP origin that tests control."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.edgecache.brain.s3.raw import Answer, send
from tests.edgecache.cluster import Cluster
from tests.http_server import HttpServer


@dataclass
class OriginAnswer:
    """The origin's response on a path."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"what the origin said"
    has_length: bool = True
    more: tuple[tuple[str, str], ...] = ()
    has_ranges: bool = False

    def part(self, wanted: str) -> "OriginAnswer":
        """Return the response to a Range."""
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        size = len(self.body)
        start = int(first) if first else max(0, size - int(last))
        if start >= size:
            return OriginAnswer(416, {"Content-Range": f"bytes */{size}"}, b"not so many")
        end = min(int(last) + 1, size) if first and last else size
        headers = {**self.headers, "Content-Range": f"bytes {start}-{end - 1}/{size}"}
        return OriginAnswer(206, headers, self.body[start:end])


@dataclass
class Asked:
    """A request to the origin."""

    path: str
    headers: dict[str, str]
    method: str = "GET"
    body: bytes = b""


class Origin(HttpServer):
    """An HTTP origin."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        # By path; for other methods than GET and HEAD by method and path.
        self.said: dict[str, OriginAnswer] = {}
        self.asked: list[Asked] = []
        # Called before a response is sent.
        self.meanwhile: Callable[[Asked], None] = lambda _asked: None
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Return its URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    """Sends the responses that tests have set."""

    protocol_version = "HTTP/1.1"
    server: Origin

    def do_GET(self) -> None:
        """Respond."""
        origin = self.server
        fields = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(fields.get("content-length", "0")))
        asked = Asked(self.path, fields, self.command, body)
        origin.asked.append(asked)
        origin.meanwhile(asked)
        name = self.path if self.command in {"GET", "HEAD"} else f"{self.command} {self.path}"
        said = origin.said.get(name, OriginAnswer(404))
        etag = said.headers.get("ETag")
        if said.status == 200 and etag and fields.get("if-none-match") == etag:
            said = OriginAnswer(304, said.headers, b"")
        is_current = fields.get("if-range", etag) == etag
        if said.status == 200 and said.has_ranges and "range" in fields and is_current:
            said = said.part(fields["range"])
        self.send_response(said.status)
        for name, value in (*said.headers.items(), *said.more):
            self.send_header(name, value)
        if said.status in {204, 304}:
            self.end_headers()
            return
        if said.has_length:
            self.send_header("Content-Length", str(len(said.body)))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.command == "HEAD":
            return
        if said.has_length:
            self.wfile.write(said.body)
        else:
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(said.body), said.body))

    def do_HEAD(self) -> None:
        """Respond."""
        self.do_GET()

    def do_POST(self) -> None:
        """Respond."""
        self.do_GET()

    def do_PUT(self) -> None:
        """Respond."""
        self.do_GET()

    def do_PATCH(self) -> None:
        """Respond."""
        self.do_GET()

    def do_DELETE(self) -> None:
        """Respond."""
        self.do_GET()

    def do_MKCOL(self) -> None:
        """Respond."""
        self.do_GET()

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


@dataclass
class PublicBucket:
    """A public bucket."""

    cluster: Cluster
    public_name: str
    scope: str
    bucket_id: int

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Send a GET to the cache; header names with _ for -."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return send(self.cluster.url, method, f"/p/{self.public_name}{path}", fields)

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request with a body to the cache."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return send(self.cluster.url, method, f"/p/{self.public_name}{path}", fields, body)

    def switch(self, **switches: bool) -> None:
        """Change the bucket."""
        path = f"/v1/buckets/{self.bucket_id}?{self.scope}"
        self.cluster.call("PATCH", path, switches)

    def says(self, word: str, path: str, **headers: str) -> Callable[[], bool]:
        """Return a function that sends a GET and searches Cache-Status for a word."""
        return lambda: word in self.get(path, **headers).headers["cache-status"]


@dataclass
class CdnBucket(PublicBucket):
    """A public bucket with the origin."""

    origin: Origin

    def respond(self, path: str, control: str = "", body: bytes = b"x", **headers: str) -> None:
        """Set the origin's response."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if control:
            fields["Cache-Control"] = control
        self.origin.said[path] = OriginAnswer(200, fields, body)

    def asked(self, path: str) -> int:
        """Return how many requests the origin got."""
        return sum(each.path == path for each in self.origin.asked)


@pytest.fixture
def origin() -> Iterator[Origin]:
    """Return an origin."""
    running = Origin()
    yield running
    running.shutdown()
    running.server_close()


@pytest.fixture
def cdn_bucket(cluster: Cluster, origin: Origin) -> CdnBucket:
    """Return a public bucket with the origin, of a new tenant."""
    return cdn_bucket_for(cluster, origin)


def cdn_bucket_for(cluster: Cluster, origin: Origin, **wanted: object) -> CdnBucket:
    """Create a public bucket with an origin. wanted: settings of the origin."""
    scope, row = create_bucket(cluster, origin.url, **wanted)
    return CdnBucket(cluster, row["public_name"], scope, row["id"], origin)


def create_bucket(cluster: Cluster, url: str, **wanted: object) -> tuple[str, dict[str, Any]]:
    """Create a public bucket with the origin at a URL; return its tenant's scope, and its row."""
    scope = cluster.tenant().scope
    described = {"name": "origin", "kind": "http", "config": {"url": url}, **wanted}
    made = cluster.call("POST", f"/v1/origins?{scope}", described)
    bucket = {"name": "cdn-bucket", "origin_id": made["id"], "is_public": True}
    return scope, cluster.call("POST", f"/v1/buckets?{scope}", bucket)
