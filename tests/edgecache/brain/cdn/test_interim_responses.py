"""Interim responses of an origin (RFC 9110 §15.2, RFC 8297) reach the client that caused them."""

import socket

from tests.edgecache.brain.cdn.raw_origin import RawOrigin, raw_bucket
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.cluster import Cluster

HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nKeep-Alive: timeout=9\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 4\r\n\r\nbody"


def test_early_hints_come_before_the_response_and_are_not_kept(cluster: Cluster) -> None:
    with RawOrigin(b"HTTP/1.1 100 Continue\r\n\r\n" + HINT, ANSWER) as origin:
        bucket = raw_bucket(cluster, origin)
        with bucket.opened("/a") as client:
            hint = client.until(b"\r\n\r\n")
            origin.go_on()
            answer = client.rest()
        assert hint.startswith(b"HTTP/1.1 103 Early Hints\r\n")
        assert f"link: </p/{bucket.public_name}/a.css>; rel=preload".encode() in hint
        assert b"keep-alive" not in hint.lower()
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.endswith(b"\r\n\r\nbody")
        until(bucket.says("hit", "/a"))
        assert bucket.raw("/a").startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_client_that_knows_no_interim_responses_gets_none(cluster: Cluster) -> None:
    with RawOrigin(HINT + ANSWER) as origin:
        bucket = raw_bucket(cluster, origin)
        with socket.create_connection(("127.0.0.1", cluster.port), 20) as connection:
            request = f"GET /p/{bucket.public_name}/a HTTP/1.0\r\nHost: x\r\n\r\n"
            connection.sendall(request.encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")


def test_one_that_is_not_valid_is_left_out(cluster: Cluster) -> None:
    with RawOrigin(b"HTTP/1.1 103 Early Hints\r\nX: a\rb\r\n\r\n" + ANSWER) as origin:
        answer = raw_bucket(cluster, origin).raw("/a")
        assert b"103" not in answer.partition(b"\r\n")[0]


def test_those_of_a_forwarded_request_are_handed_on_too(cluster: Cluster) -> None:
    with RawOrigin(HINT + ANSWER) as origin:
        bucket = raw_bucket(cluster, origin)
        cluster.call(
            "PATCH", f"/v1/buckets/{bucket.bucket_id}?{bucket.scope}", {"forwards_writes": True}
        )
        with socket.create_connection(("127.0.0.1", cluster.port), 20) as connection:
            head = f"POST /p/{bucket.public_name}/a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
            connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
            received = b""
            while data := connection.recv(65536):
                received += data
        assert received.startswith(b"HTTP/1.1 103 Early Hints\r\n")
        assert received.endswith(b"\r\n\r\nbody")
