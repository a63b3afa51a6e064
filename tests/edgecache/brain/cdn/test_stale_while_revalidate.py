"""A stale response is used while a newer one is fetched, by one brain and by two (RFC 5861 §3)."""

from collections.abc import Callable

import pytest

from tests.edgecache.brain.cdn.conftest import (
    Asked,
    CdnBucket,
    Origin,
    OriginAnswer,
    cdn_bucket_for,
)
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.cluster import Cluster

CONTROL = "max-age=0, stale-while-revalidate=600"


@pytest.fixture(params=[1, 2], ids=["one brain", "two brains"])
def bucket(
    request: pytest.FixtureRequest, start: Callable[..., Cluster], origin: Origin
) -> CdnBucket:
    """Return a bucket of brains that share their files, as the processes of one machine do."""
    return cdn_bucket_for(start(brains=request.param), origin)


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("validator", [{}, {"ETag": '"a"'}], ids=["no validator", "an ETag"])
def test_the_newer_response_replaces_the_stale_one(
    bucket: CdnBucket, validator: dict[str, str]
) -> None:
    bucket.respond("/a", CONTROL, b"old", **validator)
    bucket.get("/a")
    until(bucket.says("hit", "/a"))
    newer = dict.fromkeys(validator, '"b"')
    bucket.respond("/a", "max-age=600", b"new", **newer)
    until(lambda: bucket.get("/a").body == b"new")


def test_a_304_of_another_version_does_not_keep_the_stale_one(bucket: CdnBucket) -> None:
    bucket.respond("/a", CONTROL, b"old", ETag='"a"')
    bucket.get("/a")
    until(bucket.says("hit", "/a"))
    headers = {"ETag": '"b"', "Cache-Control": "max-age=600"}

    def confirm_another(asked: Asked) -> None:
        is_conditional = "if-none-match" in asked.headers
        bucket.origin.said["/a"] = (
            OriginAnswer(304, headers, b"")
            if is_conditional
            else OriginAnswer(200, headers, b"new")
        )

    bucket.origin.meanwhile = confirm_another
    until(lambda: bucket.get("/a").body == b"new")


def test_one_clients_credentials_refresh_what_all_get(bucket: CdnBucket) -> None:
    path = f"/v1/buckets/{bucket.bucket_id}?{bucket.scope}"
    bucket.cluster.call("PATCH", path, {"forwarded_headers": ["authorization"]})
    control = f"public, {CONTROL}"
    bucket.respond("/a", control, b"old")
    bucket.get("/a")
    until(bucket.says("hit", "/a"))
    bucket.respond("/a", "public, max-age=600", b"new")
    until(lambda: bucket.get("/a", authorization="Basic YQ==").body == b"new")
