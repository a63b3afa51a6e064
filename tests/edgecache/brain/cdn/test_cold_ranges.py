"""Ranges of what is not stored: handed on from the origin; small objects are kept whole."""

import pytest

from tests.edgecache.brain.cdn.conftest import Asked, CdnBucket, OriginAnswer
from tests.edgecache.brain.cdn.raw_origin import RawOrigin, raw_bucket
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.cluster import Cluster

SMALL = bytes(range(200))
# More than what is fetched whole for a range.
LARGE = bytes(range(256)) * (9 * 2**20 // 256)
FRESH = {"Cache-Control": "max-age=600", "ETag": '"v1"'}


def serve(bucket: CdnBucket, body: bytes, **headers: str) -> None:
    """Let the origin have a body, with ranges of it."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    bucket.origin.said["/a"] = OriginAnswer(200, FRESH | fields, body, has_ranges=True)


def ranges(bucket: CdnBucket) -> list[str | None]:
    """Return the ranges that the origin was asked for."""
    return [asked.headers.get("range") for asked in bucket.origin.asked]


@pytest.mark.parametrize(
    ("wanted", "start", "end"),
    [
        ("bytes=-5", len(LARGE) - 5, len(LARGE)),
        ("bytes=1000-1999", 1000, 2000),
        ("bytes=0-0", 0, 1),
        ("bytes=9437180-", 9437180, len(LARGE)),
    ],
)
def test_a_range_of_a_large_object_is_handed_on_and_not_kept(
    cdn_bucket: CdnBucket, wanted: str, start: int, end: int
) -> None:
    serve(cdn_bucket, LARGE)
    for _ in range(2):
        got = cdn_bucket.get("/a", range=wanted)
        assert (got.status, got.body) == (206, LARGE[start:end])
        assert got.headers["content-range"] == f"bytes {start}-{end - 1}/{len(LARGE)}"
        assert (got.headers["etag"], got.headers["content-length"]) == ('"v1"', str(end - start))
        assert got.headers["cache-status"] == "Zonal; fwd=uri-miss"
    assert ranges(cdn_bucket) == [wanted, wanted]


@pytest.mark.parametrize("wanted", ["bytes=0-", "bytes=1-2,5-6", "lines=1-2", "bytes=9-1"])
def test_what_is_no_part_is_fetched_whole(cdn_bucket: CdnBucket, wanted: str) -> None:
    serve(cdn_bucket, SMALL)
    got = cdn_bucket.get("/a", range=wanted)
    assert got.body == SMALL
    assert ranges(cdn_bucket) == [None]


def test_a_small_object_is_kept_whole_after_a_range(cdn_bucket: CdnBucket) -> None:
    serve(cdn_bucket, SMALL)
    assert cdn_bucket.get("/a", range="bytes=-5").body == SMALL[-5:]
    until(cdn_bucket.says("hit", "/a", range="bytes=7-8"))
    assert cdn_bucket.get("/a", range="bytes=7-8").body == SMALL[7:9]
    assert None in ranges(cdn_bucket)


def test_a_part_of_what_must_not_be_stored_costs_one_request(cdn_bucket: CdnBucket) -> None:
    serve(cdn_bucket, SMALL, Cache_Control="no-store")
    for number in range(3):
        assert cdn_bucket.get("/a", range=f"bytes={number}-9").body == SMALL[number:10]
    assert ranges(cdn_bucket) == [f"bytes={number}-9" for number in range(3)]


def test_an_origin_without_ranges_is_read_once(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", SMALL, ETag='"v1"')
    got = cdn_bucket.get("/a", range="bytes=-5")
    assert (got.status, got.body) == (206, SMALL[-5:])
    until(cdn_bucket.says("hit", "/a", range="bytes=7-8"))
    assert cdn_bucket.asked("/a") == 1


def test_a_range_behind_the_end_is_416_as_the_origin_says(cdn_bucket: CdnBucket) -> None:
    serve(cdn_bucket, SMALL)
    for _ in range(2):
        got = cdn_bucket.get("/a", range="bytes=200-")
        assert (got.status, got.headers["content-range"]) == (416, "bytes */200")
    assert cdn_bucket.get("/a").body == SMALL


def test_the_clients_conditions_apply_to_a_part(cdn_bucket: CdnBucket) -> None:
    serve(cdn_bucket, LARGE)
    assert cdn_bucket.get("/a", range="bytes=0-9", if_none_match='"v1"').status == 304
    assert cdn_bucket.get("/a", range="bytes=0-9", if_match='"v2"').status == 412
    assert cdn_bucket.get("/a", range="bytes=0-9", if_range='"v1"').body == LARGE[:10]
    whole = cdn_bucket.get("/a", range="bytes=0-9", if_range='"v0"')
    assert (whole.status, whole.body) == (200, LARGE)


def test_a_stale_response_is_confirmed_for_a_range(cdn_bucket: CdnBucket) -> None:
    serve(cdn_bucket, SMALL, Cache_Control="max-age=0")
    cdn_bucket.get("/a")
    until(lambda: "fwd-status=304" in cdn_bucket.get("/a").headers["cache-status"])
    got = cdn_bucket.get("/a", range="bytes=3-4")
    assert (got.status, got.body) == (206, SMALL[3:5])
    assert "fwd-status=304" in got.headers["cache-status"]


def test_an_origin_that_sends_another_part_is_asked_for_the_whole(cdn_bucket: CdnBucket) -> None:
    serve(cdn_bucket, LARGE)

    def ignore_the_first_byte(asked: Asked) -> None:
        if "range" in asked.headers:
            asked.headers["range"] = "bytes=5-9"

    cdn_bucket.origin.meanwhile = ignore_the_first_byte
    got = cdn_bucket.get("/a", range="bytes=3-9")
    assert (got.status, got.body) == (206, LARGE[3:10])


def test_a_part_that_nobody_asked_for_is_handed_on_and_not_kept(cdn_bucket: CdnBucket) -> None:
    headers = {**FRESH, "Content-Range": "bytes 0-3/9"}
    cdn_bucket.origin.said["/a"] = OriginAnswer(206, headers, b"part")
    for _ in range(2):
        got = cdn_bucket.get("/a")
        assert (got.status, got.body) == (206, b"part")
        assert got.headers["content-range"] == "bytes 0-3/9"
    assert cdn_bucket.asked("/a") == 2


def test_a_part_that_breaks_off_does_not_look_complete(cluster: Cluster) -> None:
    head = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 10-19/1000\r\n"
    with RawOrigin(head + b"Content-Length: 10\r\n\r\nabc", closes=True) as origin:
        answer = raw_bucket(cluster, origin).raw("/a", "Range: bytes=10-19")
    assert b"content-length: 10\r\n" in answer.lower() or answer.startswith(b"HTTP/1.1 502")
    assert not answer.endswith(b"\r\n0\r\n\r\n")
