"""The bytes of header fields are handed on as they came, in both directions (RFC 9110 §5.5)."""

import socket

import pytest

from tests.edgecache.brain.cdn.raw_origin import WAIT_S, RawClient, RawOrigin, raw_bucket
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.cluster import Cluster

# Latin-1, UTF-8, and bytes that are neither of a text.
VALUES = [b"caf\xe9", b"caf\xc3\xa9", b"\xc3\xa0", b"\x80\xff\xc3"]
KEPT = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 1\r\n"


def ask(cluster: Cluster, path: str, *lines: bytes, method: bytes = b"GET") -> bytes:
    """Return the whole answer to a request with these header lines."""
    with socket.create_connection(("127.0.0.1", cluster.port), WAIT_S) as connection:
        head = [method + b" " + path.encode() + b" HTTP/1.1", b"Host: x", *lines]
        connection.sendall(b"\r\n".join([*head, b"Connection: close", b"", b""]))
        return RawClient(connection).rest()


@pytest.mark.parametrize("value", VALUES)
def test_a_response_s_header_bytes_arrive_fresh_and_stored(cluster: Cluster, value: bytes) -> None:
    fields = b'Location: /%b/menu\r\nContent-Disposition: attachment; filename="%b.pdf"\r\n\r\nx'
    with RawOrigin(KEPT + fields % (value, value)) as origin:
        bucket = raw_bucket(cluster, origin)
        fresh = bucket.raw("/a")
        until(bucket.says("hit", "/a"))
        for answer in (fresh, bucket.raw("/a")):
            assert (
                b"\r\nlocation: /p/%b/%b/menu\r\n" % (bucket.public_name.encode(), value) in answer
            )
            assert b'filename="%b.pdf"\r\n' % value in answer


@pytest.mark.parametrize("value", VALUES)
def test_an_etag_of_any_bytes_is_compared_and_sent_as_it_came(
    cluster: Cluster, value: bytes
) -> None:
    with RawOrigin(KEPT.replace(b"600", b"0") + b'ETag: "%b"\r\n\r\nx' % value) as origin:
        bucket = raw_bucket(cluster, origin)
        path = f"/p/{bucket.public_name}/a"
        ask(cluster, path)
        condition = b'If-None-Match: "%b"' % value
        assert ask(cluster, path, condition).startswith(b"HTTP/1.1 304 ")

        def revalidated() -> bool:
            ask(cluster, path)
            return condition.lower() in origin.requests[-1].lower()

        until(revalidated)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_a_listed_header_s_bytes_reach_the_origin(
    cluster: Cluster, value: bytes, method: bytes
) -> None:
    with RawOrigin(KEPT + b"\r\nx") as origin:
        bucket = raw_bucket(cluster, origin)
        options = {"forwarded_headers": ["x-own", "accept-language"], "forwards_writes": True}
        cluster.call("PATCH", f"/v1/buckets/{bucket.bucket_id}?{bucket.scope}", options)
        lines = [b"X-Own: " + value, b"Accept-Language: " + value, b"Content-Length: 0"]
        ask(cluster, f"/p/{bucket.public_name}/a", *lines, method=method)
        for name in (b"x-own", b"accept-language"):
            assert b"\r\n%b: %b\r\n" % (name, value) in origin.requests[0]
