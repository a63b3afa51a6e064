"""Parts of a response: what their heads say, with and without an origin (RFC 9110 §14, §15)."""

import pytest

from tests.edgecache.brain.cdn.conftest import CdnBucket, PublicBucket
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster

BODY = bytes(range(100))
# Fields of the content, which a part has not, and of the representation, which it has.
OF_CONTENT = {
    "content-md5": "of all",
    "content-digest": "sha-256=:of all:",
    "x-amz-checksum-crc32": "of all",
    "x-ms-content-crc64": "of all",
}
OF_ALL_PARTS = {
    "repr-digest": "sha-256=:x:",
    "etag": '"v"',
    "content-language": "de",
    "content-type": "text/css",
    "x-own": "1",
}


@pytest.fixture(params=["an origin", "none"])
def bucket(request: pytest.FixtureRequest, cdn_bucket: CdnBucket, cluster: Cluster) -> PublicBucket:
    """Return a public bucket that has the body at /a, fetched and stored, or written."""
    if request.param == "an origin":
        cdn_bucket.respond("/a", "max-age=600", BODY, Accept_Ranges="none")
        cdn_bucket.get("/a")
        until(cdn_bucket.says("hit", "/a"))
        return cdn_bucket
    keys = cluster.tenant()
    row = cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "own", "is_public": True})
    signer = Signer(keys, cluster.url)
    sent = signer.sign("PUT", "/own/a", payload="UNSIGNED-PAYLOAD")
    assert send(cluster.url, "PUT", "/own/a", sent, BODY).status == 200
    return PublicBucket(cluster, row["public_name"], keys.scope, row["id"])


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_client_learns_that_it_may_resume(bucket: PublicBucket, method: str) -> None:
    assert bucket.get("/a", method).headers["accept-ranges"] == "bytes"


def test_a_part_and_an_impossible_part_say_what_there_is(bucket: PublicBucket) -> None:
    part = bucket.get("/a", range="bytes=90-")
    assert (part.status, part.body) == (206, BODY[90:])
    assert part.headers["content-range"] == "bytes 90-99/100"
    impossible = bucket.get("/a", range="bytes=100-")
    assert (impossible.status, impossible.headers["content-range"]) == (416, "bytes */100")
    assert part.headers["accept-ranges"] == impossible.headers["accept-ranges"] == "bytes"


def test_a_part_has_no_fields_of_the_whole_content(cdn_bucket: CdnBucket) -> None:
    fields = {name.replace("-", "_"): value for name, value in (OF_CONTENT | OF_ALL_PARTS).items()}
    cdn_bucket.respond("/a", "max-age=600", BODY, **fields)
    whole = cdn_bucket.get("/a")
    assert OF_CONTENT.items() <= whole.headers.items()
    until(cdn_bucket.says("hit", "/a"))
    part = cdn_bucket.get("/a", range="bytes=0-9")
    assert part.status == 206
    assert part.headers.keys().isdisjoint(OF_CONTENT)
    assert OF_ALL_PARTS.items() <= part.headers.items()
    assert cdn_bucket.get("/a", if_none_match='"v"').headers.keys().isdisjoint(OF_CONTENT)
