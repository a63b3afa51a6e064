"""Responses stored by S3, and stored responses with lost bytes, are still correct."""

import hashlib

import pytest

from edgecache.runtime.hot_cache import OBJECT_LIMIT_BYTES
from tests.edgecache.brain.cdn.conftest import CdnBucket
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Keys


def lose(cdn_bucket: CdnBucket, body: bytes) -> None:
    """Delete bytes from every worker and from the brain."""
    name = hashlib.sha256(body).hexdigest()
    folder = cdn_bucket.cluster.folder
    # A replication that is still running would restore them.
    until(lambda: len(list(folder.glob(f"worker*/**/{name}"))) == len(cdn_bucket.cluster.nodes))
    for path in folder.rglob(name):
        path.unlink()


def read_as_an_object(cdn_bucket: CdnBucket, key: str) -> bytes:
    """Read through S3, with a key of the bucket's owner."""
    organization, environment = (
        int(pair.partition("=")[2]) for pair in cdn_bucket.scope.split("&")
    )
    keys = cdn_bucket.cluster.tenant(like=Keys(organization, environment, "", ""))
    answer = Signer(keys, cdn_bucket.cluster.url).send("GET", f"/cdn-bucket/{key}")
    assert answer.status == 200
    return answer.body


@pytest.mark.parametrize("path", ["/a", "/a?v=1"])
def test_lost_bytes_are_fetched_again(cdn_bucket: CdnBucket, path: str) -> None:
    # Too large to be kept in memory.
    old = f"lost of {path} {cdn_bucket.public_name}".encode().ljust(2 * OBJECT_LIMIT_BYTES)
    cdn_bucket.respond(path, "max-age=600", old)
    cdn_bucket.get(path)
    until(cdn_bucket.says("hit", path))
    lose(cdn_bucket, old)
    cdn_bucket.respond(path, "max-age=0", b"new", X_Own="1")
    answer = cdn_bucket.get(path)
    assert (answer.status, answer.body, answer.headers["x-own"]) == (200, b"new", "1")
    # The new response is fresh for no longer than the origin says.
    cdn_bucket.respond(path, "max-age=0", b"newer")
    assert cdn_bucket.get(path).body == b"newer"


@pytest.mark.parametrize("control", ["max-age=0", "no-store"])
def test_a_read_through_s3_stores_nothing_longer_than_the_origin_allows(
    cdn_bucket: CdnBucket, control: str
) -> None:
    cdn_bucket.respond("/a", control, b"old")
    assert read_as_an_object(cdn_bucket, "a") == b"old"
    cdn_bucket.respond("/a", control, b"new")
    # The fetch of the object may still be running; its response came earlier.
    for _ in range(3):
        assert cdn_bucket.get("/a").body == b"new"


@pytest.mark.parametrize("time", range(5))
def test_a_response_stored_by_s3_is_not_used_for_another_variant(
    cdn_bucket: CdnBucket, time: int
) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"plain", Vary="Accept-Language")
    assert read_as_an_object(cdn_bucket, "a") == b"plain"
    # The fetch of the object may have ended or not.
    cdn_bucket.respond("/a", "max-age=600", b"german", Vary="Accept-Language")
    for _ in range(3):
        assert cdn_bucket.get("/a", accept_language="de").body == b"german", time


def test_an_object_without_a_validator_is_sent_whole(cdn_bucket: CdnBucket) -> None:
    organization, environment = (
        int(pair.partition("=")[2]) for pair in cdn_bucket.scope.split("&")
    )
    keys = cdn_bucket.cluster.tenant(like=Keys(organization, environment, "", ""))
    signer = Signer(keys, cdn_bucket.cluster.url)
    cdn_bucket.respond("/a", "no-store", b"old")
    first = signer.send("GET", "/cdn-bucket/a")
    assert "etag" not in first.headers
    cdn_bucket.respond("/a", "no-store", b"new")
    later = "Fri, 01 Jan 2100 00:00:00 GMT"
    for condition in ({"if-none-match": '""'}, {"if-modified-since": later}):
        answer = signer.send("GET", "/cdn-bucket/a", headers=condition)
        assert (answer.status, answer.body) == (200, b"new")
