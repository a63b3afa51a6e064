"""Purges and warming by what people paste: a key, a prefix, a URL; nothing else is taken."""

import json
import urllib.error
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.edgecache.brain.cdn.conftest import CdnBucket, OriginAnswer
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.cdn.test_locations import at_own_host, host_of

__all__ = ["at_own_host"]

PATHS = ("/a.css", "/a.css?x=1", "/dir/b%20c.css", "/*", "/%2541.css", "/p/d.css")


@pytest.fixture
def kept(at_own_host: CdnBucket) -> CdnBucket:
    """Return a bucket that keeps a response for each path."""
    for path in PATHS:
        at_own_host.respond(path, "max-age=600", path.encode())
        at_own_host.get(path)
        until(at_own_host.says("hit", path))
    return at_own_host


def ask(bucket: CdnBucket, call: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the status and the answer of a call for the bucket's tenant."""
    tenant = {name: int(value) for name, value in parse_qsl(bucket.scope)}
    try:
        return 200, bucket.cluster.call("POST", f"/v1/{call}", tenant | body)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def spelled(text: str, bucket: CdnBucket) -> str:
    """Return a text with the names of the test."""
    return text.format(n=bucket.public_name, h=host_of(bucket), u=bucket.cluster.url)


@pytest.mark.parametrize(
    ("key", "count"),
    [
        ("cdn-bucket/a.css", 2),
        ("cdn-bucket/a.css?x=1", 1),
        ("cdn-bucket/dir/b c.css", 1),
        ("{u}/p/{n}/a.css", 2),
        ("{u}/p/{n}/a.css?x=1#top", 1),
        ("https://cdn.example.net/p/{n}/a.css", 2),
        ("https://{h}/a.css", 2),
        ("HTTPS://{h}:443/dir/b%20c.css", 1),
        ("http://{h}/dir/b c.css", 1),
        ("{u}/cdn-bucket/a.css", 2),
        ("http://cdn-bucket.localhost/a.css", 2),
        ("http://cdn-bucket.localhost/p/d.css", 1),
        # Links, whose parameters are no part of what is kept.
        ("{u}/cdn-bucket/a.css?X-Amz-Signature=0", 2),
        ("https://{h}/a.css?zonal-expires=1&zonal-signature=0", 2),
        ("{u}/p/{n}/a.css?x=1&zonal-expires=1&%5Aonal-Signature=0", 1),
        ("cdn-bucket/a.css?x=1&zonal-expires=1&zonal-signature=0", 1),
        ("http://{h}/%2A", 1),
        ("http://{h}/%2541.css", 1),
        ("cdn-bucket/none", 0),
    ],
)
def test_a_key_is_purged_as_it_is_pasted(kept: CdnBucket, key: str, count: int) -> None:
    for preview in (True, False):
        body = {"keys": [spelled(key, kept)], "preview": preview}
        status, done = ask(kept, "purge", body)
        assert (status, done["objects_purged"]) == (200, count)
        assert done.keys() == {"objects_purged", "bytes_freed", "nodes_affected"}


@pytest.mark.parametrize(
    ("prefix", "count"),
    [("cdn-bucket/", 6), ("cdn-bucket/di", 1), ("https://{h}/dir/", 1), ("{u}/p/{n}/a", 2)],
)
def test_a_prefix_is_purged_as_it_is_pasted(kept: CdnBucket, prefix: str, count: int) -> None:
    status, done = ask(kept, "purge", {"prefix": spelled(prefix, kept)})
    assert (status, done["objects_purged"]) == (200, count)


@pytest.mark.parametrize(
    ("field", "text", "status", "right"),
    [
        ("keys", "https://www.example.com/a.css", 400, "not a host of a bucket"),
        ("keys", "/cdn-bucket/a.css", 400, 'Write "cdn-bucket/a.css"'),
        ("keys", "*", 400, "all: true"),
        ("keys", "cdn-bucket/*", 400, 'prefix: "cdn-bucket/"'),
        ("keys", "https://{h}/dir/*", 400, 'prefix: "cdn-bucket/dir/"'),
        ("keys", "cdn-bucket/%61.css", 400, 'Write "cdn-bucket/a.css"'),
        ("keys", "cdn-bucket/../a.css", 400, "where it leads"),
        ("keys", "https://{h}/%zz", 400, "hexadecimal"),
        ("keys", "https://{h}/%ff", 400, "UTF-8"),
        ("keys", "https://[/a", 400, "not a URL"),
        ("keys", "cdn-bucket", 400, 'prefix: "cdn-bucket/"'),
        ("keys", "CDN/a.css", 400, "name of a bucket"),
        ("keys", "cdn-bucket/" + 1025 * "a", 400, "1,024 bytes"),
        ("keys", "cdn-bucket/a?" + 2049 * "a", 400, "2,048 characters"),
        ("keys", "other/a.css", 404, 'no bucket "other"'),
        ("keys", "{n}/a.css", 404, 'write "cdn-bucket/key"'),
        ("keys", "{u}/p/other/a.css", 404, 'public name "other"'),
        ("prefix", "cdn-b", 400, "bucket/key"),
        ("prefix", "cdn-bucket", 400, 'prefix: "cdn-bucket/"'),
        ("prefix", "cdn-bucket/dir/*", 400, 'Write "cdn-bucket/dir/"'),
        ("prefix", "https://{h}/dir?x=1", 400, "no query"),
        ("prefix", "other/", 404, 'no bucket "other"'),
    ],
)
def test_what_can_name_nothing_is_refused_before_anything_is_purged(
    kept: CdnBucket, field: str, text: str, status: int, right: str
) -> None:
    wrong = spelled(text, kept)
    body: dict[str, object] = {"keys": ["cdn-bucket/a.css"]}
    if field == "prefix":
        body["prefix"] = wrong
    else:
        body["keys"] = ["cdn-bucket/a.css", wrong]
    found, problem = ask(kept, "purge", body)
    assert (found, right in json.dumps(problem).replace('\\"', '"')) == (status, True), problem
    assert kept.says("hit", "/a.css")()


def test_another_tenant_s_names_are_unknown(kept: CdnBucket) -> None:
    other = kept.cluster.tenant()
    theirs = replace(kept, scope=other.scope)
    for text, status in [("https://{h}/a.css", 400), ("{u}/p/{n}/a.css", 404)]:
        assert ask(theirs, "purge", {"keys": [spelled(text, kept)]})[0] == status
    assert kept.says("hit", "/a.css")()


@pytest.mark.parametrize("key", ["cdn-bucket/w.css?x=1", "https://{h}/w.css?x=1"])
@pytest.mark.parametrize("vary", ["", "Accept-Encoding"])
def test_what_is_warmed_is_what_browsers_get(at_own_host: CdnBucket, key: str, vary: str) -> None:
    fields = {"Cache-Control": "max-age=600", **({"Vary": vary} if vary else {})}
    at_own_host.origin.said["/w.css?x=1"] = OriginAnswer(200, fields, b"x")
    assert ask(at_own_host, "warm", {"keys": [spelled(key, at_own_host)]}) == (
        200,
        {"warmed": 1, "failed": []},
    )
    asked = at_own_host.asked("/w.css?x=1")
    for codings in ("gzip, deflate, br, zstd", ""):
        assert at_own_host.says("hit", "/w.css?x=1", accept_encoding=codings)()
    assert at_own_host.says("hit", "/w.css?x=1")()
    assert at_own_host.asked("/w.css?x=1") == asked


@pytest.mark.parametrize("key", ["{u}/p/{n}/w.css?x=1&", "cdn-bucket/w.css?x=1&"])
def test_the_origin_gets_no_signature_of_what_is_warmed(at_own_host: CdnBucket, key: str) -> None:
    at_own_host.respond("/w.css?x=1", "max-age=600")
    keys = [spelled(key, at_own_host) + "zonal-expires=1&zonal-signature=0"]
    assert ask(at_own_host, "warm", {"keys": keys})[1]["warmed"] == 1
    assert {asked.path for asked in at_own_host.origin.asked} == {"/w.css?x=1"}


def test_what_cannot_be_kept_is_not_called_warm(at_own_host: CdnBucket) -> None:
    at_own_host.respond("/private", "no-store")
    # It comes in pieces: the fetch is known to pass them on before it has ended.
    at_own_host.respond("/large", "no-store", bytes(300_000))
    names = [f"cdn-bucket/{name}" for name in ("private", "large", "none")]
    _, done = ask(at_own_host, "warm", {"keys": names})
    codes = [row["code"] for row in done["failed"]]
    assert codes == ["not_kept", "not_kept", "status_404"]
    assert ask(at_own_host, "warm", {"keys": ["cdn-bucket/%61"]})[0] == 400
