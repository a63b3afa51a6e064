"""POST, PUT, PATCH and DELETE to a public bucket that forwards them."""

import asyncio
import json
import select
import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import Mock

import pytest

from edgecache.brain.cdn.forwarding import (
    BODY_LIMIT_BYTES,
    FORWARD_LIMIT,
    SLOW_AFTER_S,
    SLOW_BYTES_PER_S,
    Forwarding,
    RunningForward,
)
from edgecache.brain.core.errors import Overloaded
from edgecache.http.server.limits import NEVER
from tests.edgecache.brain.cdn.conftest import (
    Asked,
    CdnBucket,
    Origin,
    OriginAnswer,
    cdn_bucket_for,
    create_bucket,
)
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster

KEPT = {"Cache-Control": "max-age=600"}
UNSAFE = ["POST", "PUT", "PATCH", "DELETE", "MKCOL"]
SAFE = ["OPTIONS", "PROPFIND", "PURGE", "TRACE", "SEARCH"]


@pytest.fixture
def forwarded(cdn_bucket: CdnBucket) -> CdnBucket:
    """Return a bucket that forwards unsafe requests."""
    cdn_bucket.switch(forwards_writes=True)
    return cdn_bucket


def keep(cdn_bucket: CdnBucket, path: str, body: bytes) -> None:
    """Have the cache store a response, and then change the origin's."""
    cdn_bucket.respond(path, "max-age=600", body)
    cdn_bucket.get(path)
    until(cdn_bucket.says("hit", path))
    cdn_bucket.respond(path, "max-age=600", b"new")


@pytest.mark.parametrize("method", UNSAFE)
def test_a_request_and_its_response_are_forwarded(forwarded: CdnBucket, method: str) -> None:
    said = OriginAnswer(
        202, {"Content-Type": "text/css", "X-Own": "1", "Set-Cookie": "a=b"}, b"done"
    )
    forwarded.origin.said[f"{method} /a%20b?q=1"] = said
    answer = forwarded.send(
        method, "/a%20b?q=1", b"body", content_type="text/plain", if_match='"v1"', accept="*/*"
    )
    assert (answer.status, answer.body) == (202, b"done")
    assert (answer.headers["content-type"], answer.headers["x-own"]) == ("text/css", "1")
    assert answer.headers["cache-status"] == "Zonal; fwd=method; fwd-status=202"
    assert "set-cookie" not in answer.headers
    (asked,) = forwarded.origin.asked
    assert (asked.method, asked.body) == (method, b"body")
    received = {name: asked.headers[name] for name in ("content-type", "if-match", "accept")}
    assert received == {"content-type": "text/plain", "if-match": '"v1"', "accept": "*/*"}


def test_a_forwarded_request_has_only_the_client_s_credentials(
    cluster: Cluster, origin: Origin
) -> None:
    cdn_bucket = cdn_bucket_for(cluster, origin, secret={"authorization": "Bearer of-the-origin"})
    cdn_bucket.switch(forwards_writes=True)
    origin.said["/a"] = origin.said["POST /a"] = OriginAnswer(200)
    cdn_bucket.get("/a")
    cdn_bucket.send("POST", "/a", b"x", cookie="session=1", x_http_method_override="DELETE")
    cdn_bucket.send("POST", "/a", b"x", authorization="Bearer of-the-client")
    read, bare, own = (asked.headers for asked in origin.asked)
    assert read["authorization"] == "Bearer of-the-origin"
    assert bare.keys().isdisjoint({"authorization", "cookie", "x-http-method-override"})
    assert own["authorization"] == "Bearer of-the-client"


@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize("status", [200, 204, 303])
def test_a_successful_unsafe_request_invalidates_the_stored_response(
    forwarded: CdnBucket, method: str, status: int
) -> None:
    for path in ("/a", "/a?v=1", "/b"):
        keep(forwarded, path, b"old")
    forwarded.origin.said[f"{method} /a"] = OriginAnswer(status, {}, b"")
    assert forwarded.send(method, "/a").status == status
    assert forwarded.get("/a").body == forwarded.get("/a?v=1").body == b"new"
    assert forwarded.get("/b").body == b"old"


@pytest.mark.parametrize("status", [400, 401, 404, 409, 500, 503])
def test_an_error_response_invalidates_no_stored_response(
    forwarded: CdnBucket, status: int
) -> None:
    keep(forwarded, "/a", b"old")
    forwarded.origin.said["POST /a"] = OriginAnswer(status, {}, b"why not")
    answer = forwarded.send("POST", "/a", b"x")
    assert (answer.status, answer.body) == (status, b"why not")
    assert forwarded.get("/a").body == b"old"
    # Sent once: it may have had an effect although it failed.
    assert [asked.method for asked in forwarded.origin.asked].count("POST") == 1


def test_locations_in_the_response_are_invalidated_and_rewritten(forwarded: CdnBucket) -> None:
    for path in ("/made%20one", "/said", "/other"):
        keep(forwarded, path, b"old")
    url = forwarded.origin.url
    fields = {"Location": "/made%20one?x=1#top", "Content-Location": f"{url}said"}
    forwarded.origin.said["POST /a"] = OriginAnswer(201, fields, b"")
    made = forwarded.send("POST", "/a", b"x")
    public = f"/p/{forwarded.public_name}"
    assert made.headers["location"] == f"{public}/made%20one?x=1#top"
    assert made.headers["content-location"] == f"{public}/said"
    bodies = [forwarded.get(path).body for path in ("/made%20one", "/said", "/other")]
    assert bodies == [b"new", b"new", b"old"]


def test_locations_of_other_origins_are_not_invalidated(forwarded: CdnBucket) -> None:
    keep(forwarded, "/b", b"old")
    forwarded.origin.said["POST /a"] = OriginAnswer(
        303, {"Location": "http://elsewhere.example/b"}, b""
    )
    # The redirect is not followed: the client decides.
    answer = forwarded.send("POST", "/a", b"x")
    assert (answer.status, answer.headers["location"]) == (303, "http://elsewhere.example/b")
    assert forwarded.get("/b").body == b"old"


def test_the_response_to_an_unsafe_request_is_not_stored(forwarded: CdnBucket) -> None:
    forwarded.origin.said["POST /a"] = OriginAnswer(200, KEPT, b"of the POST")
    for _ in range(2):
        assert forwarded.send("POST", "/a", b"x").body == b"of the POST"
    assert forwarded.get("/a").status == 404
    assert [asked.method for asked in forwarded.origin.asked] == ["POST", "POST", "GET"]


def test_a_concurrent_read_does_not_store_the_old_version(forwarded: CdnBucket) -> None:
    was_read, go_on = threading.Event(), threading.Event()

    def hold(asked: Asked) -> None:
        if asked.method == "GET" and not was_read.is_set():
            was_read.set()
            assert go_on.wait(20)

    forwarded.origin.said = {"/a": OriginAnswer(200, KEPT, b"old"), "POST /a": OriginAnswer(200)}
    forwarded.origin.meanwhile = hold
    reading = threading.Thread(target=forwarded.get, args=["/a"])
    reading.start()
    assert was_read.wait(20)
    assert forwarded.send("POST", "/a", b"x").status == 200
    go_on.set()
    reading.join()
    forwarded.respond("/a", "max-age=600", b"new")
    assert forwarded.get("/a").body == b"new"


def test_another_brain_has_forgotten_the_old_version_before_the_response(
    forwarded: CdnBucket, tmp_path: Path
) -> None:
    cluster = forwarded.cluster
    other = Cluster(tmp_path, cluster.database_url, cluster.secret_keys, workers=0)
    try:
        other.start()
        target = f"/p/{forwarded.public_name}/a"
        forwarded.respond("/a", "max-age=600", b"old")
        forwarded.get("/a")
        until(lambda: "hit" in send(other.url, "GET", target).headers["cache-status"])
        forwarded.respond("/a", "max-age=600", b"new")
        forwarded.origin.said["POST /a"] = OriginAnswer(200)
        assert forwarded.send("POST", "/a", b"x").status == 200
        assert send(other.url, "GET", target).body == b"new"
    finally:
        other.stop()


def test_a_client_that_disconnects_does_not_prevent_the_invalidation(forwarded: CdnBucket) -> None:
    keep(forwarded, "/a", b"old")
    left = threading.Event()

    def hold(asked: Asked) -> None:
        if asked.method == "POST":
            assert left.wait(20)

    forwarded.origin.said["POST /a"] = OriginAnswer(200)
    forwarded.origin.meanwhile = hold
    with socket.create_connection(("127.0.0.1", forwarded.cluster.port)) as client:
        head = f"POST /p/{forwarded.public_name}/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
        client.sendall(head.encode() + b"\r\nx")
        until(lambda: forwarded.origin.asked[-1].method == "POST")
    left.set()
    until(lambda: forwarded.get("/a").body == b"new")


def test_an_unknown_result_invalidates_the_stored_response(forwarded: CdnBucket) -> None:
    keep(forwarded, "/a", b"old")
    forwarded.origin.said["POST /a"] = OriginAnswer(200, {"Content-Length": "x"}, b"")
    assert forwarded.send("POST", "/a", b"x").status == 502
    assert forwarded.get("/a").body == b"new"


@pytest.mark.parametrize("framing", ["Content-Length: {}", "Transfer-Encoding: chunked"])
def test_a_body_over_the_limit_does_not_reach_the_origin(
    forwarded: CdnBucket, framing: str
) -> None:
    size = BODY_LIMIT_BYTES + 1
    head = f"PUT /p/{forwarded.public_name}/a HTTP/1.1\r\nHost: x\r\n{framing.format(size)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", forwarded.cluster.port), timeout=20) as client:
        client.sendall(head.encode())
        if "chunked" in framing:
            client.sendall(b"%x\r\n" % size + bytes(size))
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")
    assert forwarded.origin.asked == []


def test_the_slowest_request_is_cancelled_at_the_limit(forwarded: CdnBucket) -> None:
    go_on = threading.Event()

    def hold(asked: Asked) -> None:
        if asked.path == "/held":
            # Longer than all waits before it together.
            assert go_on.wait(100)

    forwarded.origin.said = {"POST /held": OriginAnswer(200), "POST /a": OriginAnswer(200)}
    forwarded.origin.meanwhile = hold
    with ExitStack() as stack:

        def begin(path: str, body: bytes) -> socket.socket:
            address = ("127.0.0.1", forwarded.cluster.port)
            client = stack.enter_context(socket.create_connection(address, timeout=20))
            line = f"POST /p/{forwarded.public_name}{path} HTTP/1.1\r\n"
            client.sendall(f"{line}Host: x\r\nContent-Length: 2\r\n\r\n".encode() + body)
            return client

        held = [begin("/held", b"xx") for _ in range(2)]
        until(lambda: forwarded.asked("/held") == len(held))
        slow = [begin("/a", b"x") for _ in range(FORWARD_LIMIT - len(held))]
        until(lambda: forwarded.send("POST", "/a", b"x").status == 503)
        until(lambda: forwarded.send("POST", "/a", b"x").status == 200)

        (received,), *_ = select.select(slow, [], [], 20)
        assert received.recv(100).startswith(b"HTTP/1.1 408 ")
        # No other request is cancelled: neither faster ones nor those at the origin.
        slow.remove(received)
        go_on.set()
        for client in slow:
            client.sendall(b"x")
        for client in held:
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        # One may have been refused at its start, when a request that only asked was before it.
        for client in slow:
            assert client.recv(100).startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 503 "))


async def test_only_slow_requests_are_cancelled() -> None:
    forwarding, now = Forwarding(Mock()), asyncio.get_running_loop().time()

    def place(
        sent: int = 0,
        *,
        age_s: float = 2 * SLOW_AFTER_S,
        bucket_id: int = 1,
        is_complete: bool = False,
    ) -> Mock:
        exchange = Mock(body_bytes=sent, is_complete=is_complete)
        forwarding._running[Mock()] = RunningForward(bucket_id, exchange, now - age_s)
        return exchange

    others = [
        place(bucket_id=2),
        place(is_complete=True),
        # At the origin, or not asked for the body yet.
        place(age_s=-NEVER),
        *(place(age_s=SLOW_AFTER_S / 2) for _ in range(FORWARD_LIMIT - 5)),
        place(int(3 * SLOW_BYTES_PER_S * SLOW_AFTER_S)),
    ]
    forwarding._make_room(1)
    faster, slower = place(9), place(8, age_s=1.5 * SLOW_AFTER_S)
    slowest = place(8)
    forwarding._make_room(1)
    assert (slowest.expire.call_count, slower.expire.call_count) == (1, 0)
    forwarding._make_room(1)
    forwarding._make_room(1)
    assert [each.expire.call_count for each in (slowest, slower, faster)] == [1, 1, 1]
    with pytest.raises(Overloaded):
        forwarding._make_room(1)
    assert not any(other.expire.called for other in others)


async def test_a_client_that_does_not_read_its_response_is_cut_at_the_limit() -> None:
    forwarding, now = Forwarding(Mock()), asyncio.get_running_loop().time()

    def place(*, unread_bytes: int) -> Mock:
        exchange = Mock(sent_bytes=100)
        exchange.transport.get_write_buffer_size.return_value = unread_bytes
        running = RunningForward(1, exchange, answered=now - 2 * SLOW_AFTER_S)
        forwarding._running[Mock()] = running
        return exchange

    # These wait for their origin.
    reading = [place(unread_bytes=0) for _ in range(FORWARD_LIMIT - 1)]
    stalled = place(unread_bytes=10**6)
    forwarding._make_room(1)
    assert stalled.cut.called
    assert not any(each.cut.called for each in reading)
    with pytest.raises(Overloaded):
        forwarding._make_room(1)


async def test_a_cancelled_request_counts_until_it_has_ended() -> None:
    forwarding, now = Forwarding(Mock()), asyncio.get_running_loop().time()
    for _ in range(2 * FORWARD_LIMIT):
        forwarding._make_room(1)
        exchange = Mock(body_bytes=0, is_complete=False)
        forwarding._running[Mock()] = RunningForward(1, exchange, now - 2 * SLOW_AFTER_S)
    with pytest.raises(Overloaded):
        forwarding._make_room(1)


@pytest.mark.parametrize("method", ["GET", "HEAD", *UNSAFE])
def test_a_request_that_zonal_has_sent_is_a_loop(forwarded: CdnBucket, method: str) -> None:
    assert forwarded.send(method, "/a", cdn_loop="other, Zonal; v=1").status == 508
    assert forwarded.origin.asked == []
    assert forwarded.send(method, "/a", cdn_loop="not-zonal, other").status == 404
    mark = "not-zonal, other, zonal" if method in UNSAFE else "zonal"
    assert forwarded.origin.asked[0].headers["cdn-loop"] == mark


def test_a_circle_of_buckets_ends_after_one_round(cluster: Cluster) -> None:
    _, row = create_bucket(cluster, f"{cluster.url}/")
    name = f"/p/{row['public_name']}"
    assert send(cluster.url, "GET", f"{40 * name}/nothing.css").status == 508


def test_a_circle_by_the_object_api_ends_after_one_round(cluster: Cluster) -> None:
    keys = cluster.tenant()
    config = {"bucket": "ring", "region": "us-east-1", "endpoint": cluster.url}
    secret = {"access_key_id": keys.access_key, "secret_access_key": keys.secret_key}
    origin = {"name": "ring", "kind": "s3", "config": config, "secret": secret}
    made = cluster.call("POST", f"/v1/origins?{keys.scope}", origin)
    row = {"name": "ring", "origin_id": made["id"]}
    cluster.call("POST", f"/v1/buckets?{keys.scope}", row)
    signer = Signer(keys, cluster.url)
    assert send(cluster.url, "GET", "/ring/a", signer.sign("GET", "/ring/a")).status >= 500

    def causes() -> set[str]:
        lines = (json.loads(line) for line in cluster.log.splitlines())
        return {line.get("cause", "") for line in lines if line.get("bucket") == "ring"}

    until(lambda: causes() == {"loop", "status-502"})


SENT = {
    "accept": "text/html",
    "accept-encoding": "br",
    "content-type": "text/css",
    "digest": "sha-256=x",
    "if-match": '"v1"',
    "origin": "https://app.example",
    "range": "bytes=0-1",
    "stripe-signature": "t=1,v1=x",
    "user-agent": "hooks/1",
    "x-csrf-token": "t",
    "x-requested-with": "fetch",
}
WITHHELD = {
    "connection": "x-hop",
    "cookie": "a=b",
    "forwarded": "for=192.0.2.1",
    "te": "trailers",
    "x-accel-redirect": "/x",
    "x-forwarded-for": "192.0.2.1",
    "x-hop": "1",
    "x-http-method-override": "DELETE",
    "x-real-ip": "192.0.2.1",
}


@pytest.mark.parametrize("method", UNSAFE)
def test_a_forwarded_request_has_the_client_s_end_to_end_headers(
    forwarded: CdnBucket, method: str
) -> None:
    path = f"/p/{forwarded.public_name}/a"
    send(forwarded.cluster.url, method, path, SENT | WITHHELD, b"x")
    (asked,) = forwarded.origin.asked
    assert {name: asked.headers.get(name) for name in SENT} == SENT
    assert asked.headers.keys().isdisjoint(WITHHELD)


@pytest.mark.parametrize("method", ["GET", *UNSAFE])
def test_a_listed_header_goes_to_the_origin_with_every_method(
    forwarded: CdnBucket, method: str
) -> None:
    listed = {"x-csrf-token": "t", "x-forwarded-for": "192.0.2.1", "x-real-ip": "192.0.2.2"}
    forwarded.cluster.call(
        "PATCH",
        f"/v1/buckets/{forwarded.bucket_id}?{forwarded.scope}",
        {"forwarded_headers": list(listed)},
    )
    send(forwarded.cluster.url, method, f"/p/{forwarded.public_name}/a", listed)
    assert {name: forwarded.origin.asked[0].headers.get(name) for name in listed} == listed


def test_invalid_paths_are_not_forwarded(forwarded: CdnBucket) -> None:
    for path in ("/../a", "/a/%2e%2e/b", "/%ff", "/a%00b"):
        assert forwarded.send("POST", path, b"x").status == 400, path
    assert forwarded.origin.asked == []


def test_only_buckets_that_allow_it_forward_requests(forwarded: CdnBucket) -> None:
    forwarded.switch(is_public=False)
    assert forwarded.send("POST", "/a", b"x").status == 404
    forwarded.switch(is_public=True, forwards_writes=False)
    assert forwarded.send("POST", "/a", b"x").status == 405
    assert forwarded.origin.asked == []


@pytest.mark.parametrize("method", SAFE)
def test_safe_methods_and_orders_to_caches_are_not_forwarded(
    forwarded: CdnBucket, method: str
) -> None:
    assert forwarded.send(method, "/a").status == 405
    assert forwarded.origin.asked == []


def test_requests_to_the_built_in_origin_are_not_forwarded(cluster: Cluster) -> None:
    scope = cluster.tenant().scope
    wanted = {"name": "own", "is_public": True, "forwards_writes": True}
    row = cluster.call("POST", f"/v1/buckets?{scope}", wanted)
    assert row["forwards_writes"] is True
    answer = send(cluster.url, "PUT", f"/p/{row['public_name']}/a", {}, b"x")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_header_bytes_beyond_ascii_arrive_as_they_were_sent(forwarded: CdnBucket) -> None:
    sent = "fr, *;x=é".encode().decode("latin-1")
    forwarded.origin.said["POST /a"] = OriginAnswer(200, {"X-Own": sent}, b"")
    assert forwarded.send("POST", "/a", accept_language=sent).headers["x-own"] == sent
    assert forwarded.origin.asked[-1].headers["accept-language"] == sent
