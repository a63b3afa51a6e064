"""What an origin's later response does to the one that is stored, and to nginx."""

from collections.abc import Iterator

import pytest

from tests.edgecache.brain.cdn.conftest import CdnBucket, OriginAnswer
from tests.edgecache.brain.cdn.test_caching import until

NO_STORE = {"Cache-Control": "no-store"}


def store(bucket: CdnBucket, control: str) -> None:
    """Let the cache store a response that is stale immediately."""
    bucket.respond("/a", f"max-age=0, {control}", b"old", ETag='"1"')
    bucket.get("/a")
    until(lambda: bucket.get("/a").headers["cache-status"] != "Zonal; fwd=uri-miss; stored")


@pytest.fixture
def withdrawn(cdn_bucket: CdnBucket) -> Iterator[CdnBucket]:
    """Return a bucket with an origin that fails in the end."""
    store(cdn_bucket, "stale-if-error=600")
    yield cdn_bucket
    cdn_bucket.origin.said["/a"] = OriginAnswer(503, {}, b"down")
    assert cdn_bucket.get("/a").status == 503


def test_a_response_that_was_withdrawn_does_not_come_back_when_the_origin_fails(
    withdrawn: CdnBucket,
) -> None:
    withdrawn.origin.said["/a"] = OriginAnswer(410, NO_STORE, b"gone")
    assert withdrawn.get("/a").status == 410


def test_a_confirmation_that_forbids_to_store_ends_it(withdrawn: CdnBucket) -> None:
    withdrawn.origin.said["/a"] = OriginAnswer(304, {"ETag": '"1"', **NO_STORE}, b"")
    assert withdrawn.get("/a").body == b"old"


@pytest.mark.parametrize("status", [200, 404])
def test_a_response_that_must_not_be_stored_ends_the_use_of_the_stale_one(
    cdn_bucket: CdnBucket, status: int
) -> None:
    store(cdn_bucket, "stale-while-revalidate=600")
    cdn_bucket.origin.said["/a"] = OriginAnswer(status, NO_STORE, b"new")
    cdn_bucket.get("/a")
    until(lambda: cdn_bucket.get("/a").body == b"new")
    assert cdn_bucket.get("/a").status == status


def test_a_stale_response_is_used_on_while_the_origin_limits_requests(
    cdn_bucket: CdnBucket,
) -> None:
    store(cdn_bucket, "stale-while-revalidate=600")
    cdn_bucket.origin.said["/a"] = OriginAnswer(429, NO_STORE, b"too many")
    before = cdn_bucket.asked("/a")

    def is_refused_twice() -> bool:
        # A request may join the fetch of the one before it, so one request is not enough.
        assert cdn_bucket.get("/a").body == b"old"
        return cdn_bucket.asked("/a") >= before + 2

    until(is_refused_twice)
    assert cdn_bucket.get("/a").body == b"old"


def test_a_confirmation_of_another_etag_confirms_nothing(cdn_bucket: CdnBucket) -> None:
    store(cdn_bucket, "must-revalidate")

    def confirm_another(asked: object) -> None:
        conditional = "if-none-match" in getattr(asked, "headers", {})
        headers = {"ETag": '"2"', "Cache-Control": "max-age=600"}
        cdn_bucket.origin.said["/a"] = (
            OriginAnswer(304, headers, b"") if conditional else OriginAnswer(200, headers, b"new")
        )

    cdn_bucket.origin.meanwhile = confirm_another
    got = cdn_bucket.get("/a")
    assert (got.status, got.body, got.headers["etag"]) == (200, b"new", '"2"')


def test_what_must_not_be_stored_ends_a_response_that_was_confirmed_wrongly(
    cdn_bucket: CdnBucket,
) -> None:
    store(cdn_bucket, "stale-while-revalidate=600")

    def confirm_another(asked: object) -> None:
        conditional = "if-none-match" in getattr(asked, "headers", {})
        cdn_bucket.origin.said["/a"] = (
            OriginAnswer(304, {"ETag": '"2"'}, b"")
            if conditional
            else OriginAnswer(200, NO_STORE, b"new")
        )

    cdn_bucket.origin.meanwhile = confirm_another
    cdn_bucket.get("/a")
    until(lambda: cdn_bucket.get("/a").body == b"new")


def test_what_one_clients_credentials_get_ends_nothing_that_all_get(
    cdn_bucket: CdnBucket,
) -> None:
    path = f"/v1/buckets/{cdn_bucket.bucket_id}?{cdn_bucket.scope}"
    cdn_bucket.cluster.call("PATCH", path, {"forwarded_headers": ["authorization"]})
    store(cdn_bucket, "public, stale-if-error=600")
    cdn_bucket.origin.said["/a"] = OriginAnswer(401, NO_STORE, b"who?")
    assert cdn_bucket.get("/a", authorization="Basic wrong").status == 401

    cdn_bucket.origin.said["/a"] = OriginAnswer(503, {}, b"down")
    assert cdn_bucket.get("/a").body == b"old"


def test_an_origin_cannot_tell_nginx_to_send_something_else(cdn_bucket: CdnBucket) -> None:
    said = {"X-Accel-Redirect": "/.zonal-store/x", "X-Accel-Buffering": "no", "X-Own": "yes"}
    cdn_bucket.origin.said["/a"] = OriginAnswer(200, {**said, "Cache-Control": "max-age=60"})
    for _ in range(2):
        got = cdn_bucket.get("/a")
        assert got.headers["x-own"] == "yes"
        assert not [name for name in got.headers if name.startswith("x-accel")]
        until(cdn_bucket.says("hit", "/a"))


def test_a_head_has_no_range(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"0123456789")
    cdn_bucket.get("/a")
    until(cdn_bucket.says("hit", "/a"))
    got = cdn_bucket.get("/a", "HEAD", range="bytes=2-4")
    assert (got.status, got.headers["content-length"]) == (200, "10")


def test_a_404_that_has_expired_is_not_kept(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.origin.said["/a"] = OriginAnswer(404, {"Expires": "0"}, b"gone")
    for _ in range(3):
        cdn_bucket.get("/a")
    assert cdn_bucket.asked("/a") == 3
