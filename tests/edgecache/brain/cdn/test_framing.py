"""Where a response ends: nothing of one becomes another one, at the origin's side or the client's.

Source: RFC 9112 §6.3. The requests of a test come by one connection, and the cluster has one
process, so that they share its connections to the origin.
"""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from tests.edgecache.brain.cdn.conftest import PublicBucket
from tests.edgecache.brain.cdn.raw_origin import WAIT_S, RawClient, RawOrigin
from tests.edgecache.cluster import Cluster

POISON = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 6\r\n\r\nPOISON"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
# As much as the kernel hands over in one piece, and as the head of a response is read in one.
READS = (8 * 1024, 256 * 1024)


class Exchange(NamedTuple):
    """A request that an origin got. port: of the connection that it came by."""

    method: str
    path: str
    port: int


class ScriptedOrigin(RawOrigin):
    """Sends the bytes that belong to a path, then reads the connection's next request."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, bytes] = {}
        self.exchanges: list[Exchange] = []
        # The connection is closed without a response to these.
        self.silent: set[str] = set()
        # What is sent after a response, once ``may_come`` is set.
        self.late: dict[str, bytes] = {}
        self.may_come, self.came = threading.Event(), threading.Event()

    def _serve(self, connection: socket.socket) -> None:
        port = connection.getpeername()[1]
        with suppress(OSError), connection, connection.makefile("rb") as reader:
            while line := reader.readline():
                method, path, _ = line.decode().split(" ")
                fields = http.client.parse_headers(reader)
                reader.read(int(fields.get("content-length", "0")))
                self.exchanges.append(Exchange(method, path, port))
                if path in self.silent:
                    return
                connection.sendall(self.said.get(path, OK))
                if path in self.late:
                    self.may_come.wait(WAIT_S)
                    connection.sendall(self.late[path])
                    self.came.set()

    def ports(self) -> list[int]:
        """Return the connections that were used, the first use first."""
        return list(dict.fromkeys(exchange.port for exchange in self.exchanges))


@pytest.fixture
def origin() -> Iterator[ScriptedOrigin]:
    """Return an origin."""
    with ScriptedOrigin() as running:
        yield running


class Buckets(NamedTuple):
    """Two buckets of one origin. web: read only. api: forwards what is sent to it."""

    web: PublicBucket
    api: PublicBucket


@pytest.fixture
def buckets(cluster: Cluster, origin: ScriptedOrigin) -> Buckets:
    """Return the buckets."""
    scope = cluster.tenant().scope
    described = {"name": "origin", "kind": "http", "config": {"url": origin.url}}
    made = cluster.call("POST", f"/v1/origins?{scope}", described)

    def bucket(name: str, **switches: bool) -> PublicBucket:
        fields = {"name": name, "origin_id": made["id"], "is_public": True, **switches}
        row = cluster.call("POST", f"/v1/buckets?{scope}", fields)
        return PublicBucket(cluster, row["public_name"], scope, row["id"])

    return Buckets(bucket("web"), bucket("api", forwards_writes=True))


def exactly(size: int) -> bytes:
    """Return a response of this many bytes, the head included."""
    length = size - len(b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n") - len(str(size))
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %0*d\r\n\r\n" % (len(str(size)), length)
    return head + bytes(length)


@pytest.mark.parametrize("next_method", ["GET", "POST"])
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(OK, id="a length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", id="no bytes"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            id="chunks",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
            id="trailers",
        ),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, id="interim"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", id="204"),
        pytest.param(b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", id="204 of 9"),
        pytest.param(b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n', id="304"),
        pytest.param(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", id="404"),
        pytest.param(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", id="302"),
        pytest.param(b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno", id="500"),
        *(pytest.param(exactly(size), id=f"of {size} bytes") for size in READS),
    ],
)
@pytest.mark.parametrize("rest", [POISON, b"\xc3\xa9"], ids=["a response", "text"])
def test_what_follows_a_response_is_thrown_away_with_its_connection(
    origin: ScriptedOrigin, buckets: Buckets, first: bytes, next_method: str, rest: bytes
) -> None:
    origin.said = {"/raw": first + rest}
    with Client(buckets.web.cluster) as client:
        client.ask("GET", f"/p/{buckets.web.public_name}/raw")
        for _ in range(2):
            assert client.ask(next_method, f"/p/{buckets.api.public_name}/home") == (200, b"ok")
    asked = [exchange[:2] for exchange in origin.exchanges if exchange.path != "/raw"]
    # Nothing of the kind was kept either.
    assert asked == [(next_method, "/home")] * 2
    raw = {exchange.port for exchange in origin.exchanges if exchange.path == "/raw"}
    assert raw.isdisjoint(exchange.port for exchange in origin.exchanges if exchange.path != "/raw")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_follows_the_response_to_an_unsafe_request_is_thrown_away(
    origin: ScriptedOrigin, buckets: Buckets, method: str
) -> None:
    origin.said = {"/raw": OK + POISON}
    with Client(buckets.web.cluster) as client:
        assert client.ask(method, f"/p/{buckets.api.public_name}/raw") == (200, b"ok")
        assert client.ask("GET", f"/p/{buckets.web.public_name}/home") == (200, b"ok")
    assert len(origin.ports()) == 2


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_an_unsafe_request_that_a_used_connection_loses_is_not_sent_again(
    origin: ScriptedOrigin, buckets: Buckets, method: str
) -> None:
    origin.silent = {"/act"}
    with Client(buckets.web.cluster) as client:
        assert client.ask("GET", f"/p/{buckets.web.public_name}/a") == (200, b"ok")
        status, _ = client.ask(method, f"/p/{buckets.api.public_name}/act")
    assert status == 502
    assert [exchange[:2] for exchange in origin.exchanges] == [("GET", "/a"), (method, "/act")]
    # It was on a connection that had been used.
    assert len(origin.ports()) == 1


def test_a_safe_request_that_a_used_connection_loses_is_sent_again(
    origin: ScriptedOrigin, buckets: Buckets
) -> None:
    origin.silent = {"/b"}
    with Client(buckets.web.cluster) as client:
        assert client.ask("GET", f"/p/{buckets.web.public_name}/a") == (200, b"ok")
        assert client.ask("GET", f"/p/{buckets.web.public_name}/b")[0] == 502
    assert [exchange.path for exchange in origin.exchanges] == ["/a", "/b", "/b"]


def test_bytes_that_come_between_two_requests_end_the_connection(
    origin: ScriptedOrigin, buckets: Buckets
) -> None:
    origin.late = {"/a": POISON}
    with Client(buckets.web.cluster) as client:
        assert client.ask("GET", f"/p/{buckets.web.public_name}/a") == (200, b"ok")
        origin.may_come.set()
        assert origin.came.wait(WAIT_S)
        assert client.ask("POST", f"/p/{buckets.api.public_name}/b") == (200, b"ok")
    assert len(origin.ports()) == 2


TWO_ENDS = {
    "both": b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "both, chunks first": b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
    "both, in other letters": b"CONTENT-LENGTH: 3\r\ntransfer-encoding: Chunked\r\n\r\n",
    "both, more than comes": b"Content-Length: 300\r\nTransfer-Encoding: chunked\r\n\r\n",
}


@pytest.mark.parametrize("fields", TWO_ENDS.values(), ids=TWO_ENDS.keys())
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_chunks_override_a_length(
    origin: ScriptedOrigin, buckets: Buckets, method: str, fields: bytes
) -> None:
    body = b"hel" + POISON
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    origin.said = {"/raw": b"HTTP/1.1 200 OK\r\n" + fields + chunks}
    answer = raw(buckets.api, method, "/raw")
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert b"content-length" not in head.lower()
    assert rest == chunks
    with Client(buckets.web.cluster) as client:
        assert client.ask(method, f"/p/{buckets.api.public_name}/raw") == (200, body)
        assert client.ask("GET", f"/p/{buckets.web.public_name}/home") == (200, b"ok")
    # Who says two ends may mean either: the connection is not used again.
    assert origin.exchanges[-1].port not in {each.port for each in origin.exchanges[:-1]}


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 3\r\nContent-Length: 9\r\n\r\n",
        b"Content-Length: 3, 9\r\n\r\n",
        b"Content-Length: +3\r\n\r\n",
        b"Content-Length: 0x3\r\n\r\n",
        b"Content-Length: 3 3\r\n\r\n",
        b"Content-Length: \r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        b"Transfer-Encoding: xchunked\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_response_without_one_clear_end_is_an_error(
    origin: ScriptedOrigin, buckets: Buckets, method: str, fields: bytes
) -> None:
    origin.said = {"/raw": b"HTTP/1.1 200 OK\r\n" + fields + b"hello wor"}
    with Client(buckets.web.cluster) as client:
        assert client.ask(method, f"/p/{buckets.api.public_name}/raw")[0] == 502
        assert client.ask("GET", f"/p/{buckets.web.public_name}/home") == (200, b"ok")


@pytest.mark.parametrize(
    "fields", [b"Content-Length: 2, 2", b"Content-Length: 2\r\nContent-Length: 2"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_length_that_is_said_twice_alike_is_sent_once(
    origin: ScriptedOrigin, buckets: Buckets, method: str, fields: bytes
) -> None:
    origin.said = {"/raw": b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n\r\nok"}
    answer = raw(buckets.api, method, "/raw").lower()
    assert answer.count(b"content-length:") == 1
    assert b"content-length: 2\r\n" in answer
    assert answer.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_body_that_is_shorter_than_its_length_does_not_look_complete(
    cluster: Cluster, method: str
) -> None:
    with RawOrigin(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", closes=True) as origin:
        bucket = api_bucket(cluster, origin.url)
        answer = raw(PublicBucket(cluster, bucket, "", 0), method, "/raw")
    assert answer == b"" or answer.startswith(b"HTTP/1.1 502") or b"content-length: 9" in answer


class Client:
    """A client with one connection, which it keeps."""

    def __init__(self, cluster: Cluster) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=WAIT_S)

    def __enter__(self) -> "Client":
        """Connect."""
        self._connection.connect()
        # http.client would connect again without a word.
        self._connection.auto_open = 0
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self._connection.close()

    def ask(self, method: str, target: str) -> tuple[int, bytes]:
        """Send a request; return the status and the body."""
        self._connection.request(method, target)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def raw(bucket: PublicBucket, method: str, path: str) -> bytes:
    """Return the bytes of the answer to a request, up to the connection's end."""
    with socket.create_connection(("127.0.0.1", bucket.cluster.port), WAIT_S) as connection:
        line = f"{method} /p/{bucket.public_name}{path} HTTP/1.1\r\n"
        fields = "Host: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        connection.sendall((line + fields).encode())
        return RawClient(connection).rest()


def api_bucket(cluster: Cluster, url: str) -> str:
    """Return the public name of a bucket that forwards what is sent to it."""
    scope = cluster.tenant().scope
    described: dict[str, Any] = {"name": "origin", "kind": "http", "config": {"url": url}}
    made = cluster.call("POST", f"/v1/origins?{scope}", described)
    fields = {"name": "api", "origin_id": made["id"], "is_public": True, "forwards_writes": True}
    return str(cluster.call("POST", f"/v1/buckets?{scope}", fields)["public_name"])
