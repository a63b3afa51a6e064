"""The options of an origin: its timeouts, its connections, and the host that it is asked for."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from urllib.error import HTTPError

import pytest

from tests.edgecache.brain.cdn.conftest import (
    CdnBucket,
    Origin,
    OriginAnswer,
    cdn_bucket_for,
    create_bucket,
)
from tests.edgecache.brain.cdn.raw_origin import WAIT_S, RawOrigin
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.s3.raw import Answer, send
from tests.edgecache.cluster import Cluster

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n"


@pytest.fixture
def origin() -> Iterator[Origin]:
    """Return an origin."""
    running = Origin()
    yield running
    running.shutdown()
    running.server_close()


def get(cluster: Cluster, origin: RawOrigin, **options: object) -> Answer:
    """Return the answer to a GET through a bucket whose origin has these options."""
    _, row = create_bucket(cluster, origin.url, **options)
    return send(cluster.url, "GET", f"/p/{row['public_name']}/a")


def test_an_origin_that_does_not_begin_in_time_is_given_up(cluster: Cluster) -> None:
    with RawOrigin(b"", OK + b"\r\ntoo late") as origin:
        answer = get(cluster, origin, first_byte_timeout_s=1)
    assert (answer.status, answer.headers["cache-status"]) == (
        504,
        "Zonal; fwd=uri-miss; detail=first-byte-timeout",
    )


def test_a_body_that_pauses_too_long_is_cut(cluster: Cluster) -> None:
    with RawOrigin(OK + b"\r\nhalf", b"more") as origin:
        scope, row = create_bucket(cluster, origin.url, idle_timeout_s=1)
        assert scope
        with socket.create_connection(("127.0.0.1", cluster.port), WAIT_S) as client:
            line = f"GET /p/{row['public_name']}/a HTTP/1.1\r\nHost: x\r\n\r\n"
            client.sendall(line.encode())
            received = b""
            with suppress(ConnectionError):
                while data := client.recv(65536):
                    received += data
    assert received.endswith(b"half")
    until(lambda: '"cause":"idle-timeout"' in cluster.log)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("text/event-stream; charset=utf-8", {"idle_timeout_s": 1}),
        ("text/x", {"idle_timeout_s": 0}),
    ],
)
def test_a_body_without_an_idle_timeout_may_pause(
    cluster: Cluster, kind: str, options: dict[str, int]
) -> None:
    head = OK + f"Content-Type: {kind}\r\nCache-Control: no-store\r\n\r\n".encode()
    # A second origin's time ends in the meantime: timeouts have been swept since the pause began.
    with RawOrigin(head + b"half", b"more") as origin, RawOrigin(b"", OK) as silent:

        def go_on_later() -> None:
            get(cluster, silent, first_byte_timeout_s=2)
            origin.go_on()

        threading.Thread(target=go_on_later).start()
        assert get(cluster, origin, **options).body == b"halfmore"


def test_a_connection_that_is_not_made_in_time_is_given_up(cluster: Cluster) -> None:
    # A server that speaks no TLS says nothing.
    with RawOrigin(b"") as origin:
        origin.reads_until = b"never"
        _, row = create_bucket(cluster, origin.url.replace("http:", "https:"), connect_timeout_s=1)
        answer = send(cluster.url, "GET", f"/p/{row['public_name']}/a")
    assert (answer.status, answer.headers["cache-status"]) == (
        504,
        "Zonal; fwd=uri-miss; detail=connect-timeout",
    )


def test_an_origin_gets_no_more_requests_at_a_time_than_it_may(
    cluster: Cluster, origin: Origin
) -> None:
    bucket = cdn_bucket_for(cluster, origin, connections=2)
    go_on, lock, running, most = threading.Event(), threading.Lock(), [0], [0]

    def hold(_asked: object) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        assert go_on.wait(WAIT_S)
        with lock:
            running[0] -= 1

    origin.meanwhile = hold
    with ExitStack() as stack:
        for number in range(4):
            client = stack.enter_context(
                socket.create_connection(("127.0.0.1", cluster.port), WAIT_S)
            )
            line = f"GET /p/{bucket.public_name}/{number} HTTP/1.1\r\nHost: x\r\n\r\n"
            client.sendall(line.encode())
        until(lambda: running[0] == 2)
        busy = bucket.get("/5")
        assert (busy.status, busy.headers["cache-status"]) == (
            503,
            "Zonal; detail=too-many-connections",
        )
        go_on.set()
        until(lambda: len(origin.asked) >= 2 and running[0] == 0)
    assert most[0] == 2


@pytest.fixture
def named(cluster: Cluster, origin: Origin) -> CdnBucket:
    """Return a bucket whose origin is asked for another host than it has."""
    bucket = cdn_bucket_for(cluster, origin, host="www.example.org")
    bucket.switch(forwards_writes=True)
    return bucket


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_origin_is_asked_for_the_host_that_its_owner_names(
    named: CdnBucket, method: str
) -> None:
    named.get("/a", method)
    assert named.origin.asked[0].headers["host"] == "www.example.org"


@pytest.mark.parametrize("host", ["http://www.example.org", "//www.example.org", "{o}"])
def test_its_urls_under_both_hosts_become_the_cache_s(named: CdnBucket, host: str) -> None:
    at = host.format(o=named.origin.url.rstrip("/"))
    named.respond("/b", "max-age=600", b"old")
    named.get("/b")
    until(named.says("hit", "/b"))
    named.respond("/b", "max-age=600", b"new")
    named.origin.said["POST /a"] = OriginAnswer(201, {"Location": f"{at}/b"}, b"")
    answer = named.send("POST", "/a", b"x")
    assert answer.headers["location"] == f"/p/{named.public_name}/b"
    assert named.get("/b").body == b"new"


def test_options_change_at_any_time_and_are_checked(named: CdnBucket) -> None:
    (row,) = named.cluster.call("GET", f"/v1/origins?{named.scope}")["origins"]
    path = f"/v1/origins/{row['id']}?{named.scope}"
    changed = named.cluster.call("PATCH", path, {"host": "", "idle_timeout_s": 0})
    assert (changed["host"], changed["idle_timeout_s"], changed["connect_timeout_s"]) == ("", 0, 5)
    named.get("/a")
    assert named.origin.asked[0].headers["host"] != "www.example.org"
    for wrong in (
        {"host": "a/b"},
        {"host": "a\r\nb"},
        {"host": "a:123456"},
        {"host": "me@a"},
        {"connect_timeout_s": 0},
        {"idle_timeout_s": -1},
        {"connections": 5000},
        {"first_byte_timeout_s": "30"},
        {"url": "http://elsewhere.example"},
    ):
        with pytest.raises(HTTPError, match="400") as refused:
            named.cluster.call("PATCH", path, wrong)
        refused.value.close()
