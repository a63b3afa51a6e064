"""A response of the cache's own says why, in Cache-Status and in the log (RFC 9211)."""

import json

import pytest

from tests.edgecache.brain.cdn.conftest import CdnBucket, OriginAnswer, PublicBucket, create_bucket
from tests.edgecache.brain.cdn.raw_origin import RawOrigin, raw_bucket
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.cluster import Cluster
from tests.ports import free_port

OK = b"HTTP/1.1 200 OK\r\n"


def bucket_at(cluster: Cluster, url: str) -> PublicBucket:
    """Return a public bucket whose origin has this URL."""
    scope, row = create_bucket(cluster, url)
    return PublicBucket(cluster, row["public_name"], scope, row["id"])


def assert_said(bucket: PublicBucket, path: str, status: int, said: str, **headers: str) -> None:
    """Check a response, and that the log has the same word."""
    answer = bucket.get(path, **headers)
    assert (answer.status, answer.headers["cache-status"]) == (status, f"Zonal; {said}")
    cause = said.rpartition("detail=")[2]

    def logged() -> bool:
        lines = [json.loads(line) for line in bucket.cluster.log.splitlines()]
        return any(
            (line.get("bucket"), line.get("cause"), line.get("status"))
            == (bucket.public_name, cause, status)
            for line in lines
        )

    until(logged)


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (b"HELLO\r\n\r\n", "answer-malformed"),
        (OK + b"no colon\r\n\r\n", "answer-malformed"),
        (OK + b"X: " + 70_000 * b"x" + b"\r\n\r\n", "head-too-long"),
        (OK + b"Content-Length: x\r\n\r\n", "length-unclear"),
        (OK + b"Transfer-Encoding: gzip\r\n\r\n", "length-unclear"),
        (b"", "closed-early"),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", "status-304"),
    ],
)
def test_an_unusable_answer_of_an_origin_is_named(
    cluster: Cluster, response: bytes, cause: str
) -> None:
    with RawOrigin(response, closes=True) as origin:
        bucket = raw_bucket(cluster, origin)
        assert_said(bucket, "/a", 502, f"fwd=uri-miss; detail={cause}")


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("http://nosuch.invalid:8080/", "name-unresolved"),
        ("http://127.0.0.1:{port}/", "connection-refused"),
        ("http://169.254.169.254/", "address-forbidden"),
    ],
)
def test_an_origin_that_cannot_be_reached_is_named(cluster: Cluster, url: str, cause: str) -> None:
    bucket = bucket_at(cluster, url.format(port=free_port()))
    assert_said(bucket, "/a", 502, f"fwd=uri-miss; detail={cause}")


def test_an_origin_without_tls_is_named(cluster: Cluster) -> None:
    with RawOrigin(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", closes=True) as origin:
        origin.reads_until = b"\x16"
        bucket = bucket_at(cluster, origin.url.replace("http:", "https:"))
        assert_said(bucket, "/a", 502, "fwd=uri-miss; detail=tls-failed")


def test_a_failed_write_is_named(cluster: Cluster) -> None:
    bucket = bucket_at(cluster, f"http://127.0.0.1:{free_port()}/")
    bucket.switch(forwards_writes=True)
    answer = bucket.send("POST", "/a", b"x")
    said = "Zonal; fwd=method; detail=connection-refused"
    assert (answer.status, answer.headers["cache-status"]) == (502, said)


def test_a_failed_revalidation_is_named(cdn_bucket: CdnBucket) -> None:
    fields = {"Cache-Control": "max-age=0, must-revalidate", "ETag": '"v"'}
    cdn_bucket.origin.said["/a"] = OriginAnswer(200, fields, b"x")
    cdn_bucket.get("/a")
    cdn_bucket.origin.said["/a"] = OriginAnswer(200, {"Content-Length": "x"}, b"")
    said = "Zonal; fwd=stale; detail=length-unclear"
    until(lambda: cdn_bucket.get("/a").headers["cache-status"] == said)


def test_what_the_cache_refuses_itself_was_not_forwarded(cdn_bucket: CdnBucket) -> None:
    assert_said(cdn_bucket, "/a", 508, "detail=loop", cdn_loop="zonal")
    assert_said(cdn_bucket, "/a", 504, "detail=only-if-cached", cache_control="only-if-cached")
    assert cdn_bucket.origin.asked == []
    cdn_bucket.switch(is_public=False)
    assert_said(cdn_bucket, "/a", 404, "detail=no-such-bucket")
