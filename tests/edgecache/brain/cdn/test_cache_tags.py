"""Tags of an origin's responses: purged by, kept from clients, renewed by a 304."""

import pytest

from tests.edgecache.brain.cdn.conftest import CdnBucket, OriginAnswer
from tests.edgecache.brain.cdn.test_caching import until


def purge(bucket: CdnBucket, **wanted: object) -> int:
    """Purge, and return how many objects."""
    organization, environment = (pair.partition("=")[2] for pair in bucket.scope.split("&"))
    tenant = {"organization_id": int(organization), "environment_pk": int(environment)}
    return int(bucket.cluster.call("POST", "/v1/purge", tenant | wanted)["objects_purged"])


@pytest.mark.parametrize(
    ("name", "value"), [("Cache-Tag", "page-1, all"), ("Surrogate-Key", "page-1 all")]
)
def test_a_tag_purges_every_variant_that_has_it(
    cdn_bucket: CdnBucket, name: str, value: str
) -> None:
    fields = {"Vary": "Accept-Language", name.replace("-", "_"): value}
    for language in ("de", "en"):
        cdn_bucket.respond("/a", "max-age=600", language.encode(), **fields)
        assert name.lower() not in cdn_bucket.get("/a", accept_language=language).headers
        until(cdn_bucket.says("hit", "/a", accept_language=language))
        assert name.lower() not in cdn_bucket.get("/a", accept_language=language).headers
    fields |= {name.replace("-", "_"): "all"}
    cdn_bucket.respond("/a", "max-age=600", b"fr", **fields)
    cdn_bucket.get("/a", accept_language="fr")
    until(cdn_bucket.says("hit", "/a", accept_language="fr"))

    preview = purge(cdn_bucket, tags=["cdn-bucket/page-1"], preview=True)
    # The first request was answered before it was known that responses vary.
    assert (preview, purge(cdn_bucket, tags=["cdn-bucket/page-1"])) == (3, 3)

    cdn_bucket.respond("/a", "max-age=600", b"new", **fields)
    bodies = [cdn_bucket.get("/a", accept_language=each).body for each in ("de", "en", "fr")]
    assert bodies == [b"new", b"new", b"fr"]


def test_the_tags_of_a_304_replace_those_before(cdn_bucket: CdnBucket) -> None:
    for path in ("/a", "/b"):
        cdn_bucket.respond(path, "max-age=0", b"x", ETag='"v"', Cache_Tag="old")
        cdn_bucket.get(path)
        # A 304 without tags says nothing about them.
        cdn_bucket.respond(path, "max-age=0", b"x", ETag='"v"')
        until(cdn_bucket.says("fwd-status=304", path))
    cdn_bucket.respond("/a", "max-age=600", b"x", ETag='"v"', Cache_Tag="new")
    cdn_bucket.get("/a")
    until(cdn_bucket.says("hit", "/a"))

    assert purge(cdn_bucket, tags=["cdn-bucket/old"]) == 1
    assert purge(cdn_bucket, tags=["cdn-bucket/new"]) == 1


def test_a_missing_page_is_purged_by_its_tag(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.origin.said["/a"] = OriginAnswer(404, {"Cache-Tag": "page-1"}, b"none yet")
    assert cdn_bucket.get("/a").status == 404
    cdn_bucket.respond("/a", "max-age=600", b"here")
    purge(cdn_bucket, tags=["cdn-bucket/page-1"])
    assert cdn_bucket.get("/a").body == b"here"


def test_ignored_tags_are_said(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"x", Cache_Tag=f"ok, {'x' * 1025}")
    said = cdn_bucket.get("/a").headers["cache-status"]
    assert said == "Zonal; fwd=uri-miss; stored; detail=tags-ignored"
    until(lambda: "cache_tags_ignored" in cdn_bucket.cluster.log)
    until(cdn_bucket.says("hit", "/a"))
    assert purge(cdn_bucket, tags=["cdn-bucket/ok"]) == 1


def test_tags_of_forwarded_and_interim_responses_stay_here(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.switch(forwards_writes=True)
    cdn_bucket.origin.said["POST /a"] = OriginAnswer(200, {"Surrogate-Key": "page-1"}, b"done")
    answer = cdn_bucket.send("POST", "/a", b"x")
    assert (answer.status, "surrogate-key" in answer.headers) == (200, False)
