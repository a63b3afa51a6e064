"""Texts that are compressed for clients that accept it."""

import gzip
from collections.abc import Callable, Mapping

import brotli
import pytest
import zstandard

from edgecache.brain.cdn.content_codings import preferred
from tests.edgecache.brain.cdn.conftest import CdnBucket, OriginAnswer
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.cdn.test_locations import at_own_host, host_of
from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster, Keys

__all__ = ["at_own_host"]

BROWSER = "gzip, deflate, br, zstd"
TEXT = b"function zonal() { return 'the same again'; }\n" * 500
DECODED: Mapping[str, Callable[[bytes], bytes]] = {
    "br": brotli.decompress,
    "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body),
    "gzip": gzip.decompress,
    "": lambda body: body,
}


def keep(bucket: CdnBucket, body: bytes = TEXT, control: str = "max-age=600", **more: str) -> None:
    """Let the cache store a text."""
    fields = {"Content_Type": "text/javascript; charset=utf-8", "ETag": '"v1"', **more}
    bucket.respond("/a.js", control, body, **fields)
    bucket.get("/a.js")
    until(bucket.says("hit", "/a.js"))


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        (BROWSER, "br"),
        ("gzip;q=1.0, br;q=0.5, zstd; q=0.8", "gzip"),
        ("zstd, gzip", "zstd"),
        ("GZIP", "gzip"),
        ("*", "br"),
        ("br;q=0, *;q=0.1", "zstd"),
        ("identity;q=0, gzip;q=0.001", "gzip"),
        ("identity;q=1, gzip;q=0.9", ""),
        ("identity;q=1, *;q=0", ""),
        ("br;q=0, zstd;q=0.0, gzip;q=0.000", ""),
        ("br;q=2, gzip;q=-1, zstd;q=x", ""),
        ("br;q=0.5;x", ""),
        ("deflate, compress", ""),
        ("", ""),
        (", ;q=1,,", ""),
        ("br, " * 100, ""),
    ],
)
def test_the_client_s_weights_choose_the_coding(accepted: str, coding: str) -> None:
    assert preferred(accepted) == coding


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip"])
def test_a_text_is_sent_in_a_coding_that_the_client_accepts(
    cdn_bucket: CdnBucket, coding: str
) -> None:
    keep(cdn_bucket, Vary="Origin")
    plain = cdn_bucket.get("/a.js")
    assert plain.body == TEXT
    assert (plain.headers["etag"], plain.headers["vary"]) == ('"v1"', "Origin, Accept-Encoding")
    for _ in range(2):
        found = cdn_bucket.get("/a.js", accept_encoding=coding)
        assert DECODED[coding](found.body) == TEXT
        assert len(found.body) < len(TEXT) / 4
        assert found.headers["content-encoding"] == coding
        assert found.headers["content-length"] == str(len(found.body))
        assert found.headers["content-type"] == "text/javascript; charset=utf-8"
        assert (found.headers["etag"], found.headers["vary"]) == ('W/"v1"', plain.headers["vary"])
        assert "accept-ranges" not in found.headers
        assert found.headers["cache-status"].startswith("Zonal; hit")
    head = cdn_bucket.get("/a.js", "HEAD", accept_encoding=coding)
    volatile = {"age", "cache-status"}
    assert {name: value for name, value in head.headers.items() if name not in volatile} == {
        name: value for name, value in found.headers.items() if name not in volatile
    }
    assert cdn_bucket.asked("/a.js") == 1


def test_the_first_reader_of_a_cold_text_gets_it_as_it_comes(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a.js", "max-age=600", TEXT, Content_Type="text/javascript", ETag='"v1"')
    first = cdn_bucket.get("/a.js", accept_encoding=BROWSER)
    assert (first.body, first.headers["vary"]) == (TEXT, "Accept-Encoding")
    until(cdn_bucket.says("hit", "/a.js", accept_encoding=BROWSER))
    assert cdn_bucket.get("/a.js", accept_encoding=BROWSER).headers["content-encoding"] == "br"


@pytest.mark.parametrize("tag", ['"v1"', 'W/"v1"', '"x", W/"v1"'])
def test_a_tag_of_either_form_confirms_both_forms(cdn_bucket: CdnBucket, tag: str) -> None:
    keep(cdn_bucket)
    for accepted, etag in ((BROWSER, 'W/"v1"'), ("identity", '"v1"')):
        found = cdn_bucket.get("/a.js", accept_encoding=accepted, if_none_match=tag)
        assert (found.status, found.body) == (304, b"")
        assert (found.headers["etag"], found.headers["vary"]) == (etag, "Accept-Encoding")
        # A client would update what it has with it (RFC 9111 §3.2).
        assert "content-encoding" not in found.headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("range", "bytes=0-"),
        ("if_range", '"v1"'),
        ("if_match", '"v1"'),
        ("cache_control", "no-transform"),
        ("want_digest", "sha-256"),
        ("want_content_digest", "sha-256=1"),
        ("want_repr_digest", "sha-256=1"),
        ("x_amz_checksum_mode", "ENABLED"),
    ],
)
def test_a_client_that_wants_the_bytes_gets_them(
    cdn_bucket: CdnBucket, name: str, value: str
) -> None:
    keep(cdn_bucket)
    assert cdn_bucket.get("/a.js", accept_encoding=BROWSER).headers["content-encoding"] == "br"
    found = cdn_bucket.get("/a.js", accept_encoding=BROWSER, **{name: value})
    assert (found.status, found.body) == (206 if name == "range" else 200, TEXT)
    assert "content-encoding" not in found.headers
    # Another client would get other bytes.
    assert (found.headers["etag"], found.headers["vary"]) == ('"v1"', "Accept-Encoding")


@pytest.mark.parametrize(
    "said",
    [
        {"control": "max-age=600, no-transform"},
        {"CDN_Cache_Control": "max-age=600, no-transform"},
        {"Content_Type": "image/png"},
        {"Content_Type": "font/woff2"},
        {"Content_Type": "application/octet-stream"},
        {"Content_Encoding": "x-own"},
        {"Content_Digest": "sha-256=:AA==:"},
        {"Repr_Digest": "sha-256=:AA==:"},
        {"Digest": "sha-256=AA=="},
        {"Content_MD5": "AA=="},
        {"X_Amz_Checksum_CRC32": "AA=="},
        {"body": TEXT[:1023]},
        {"body": TEXT * (2**20 // len(TEXT) + 1)},
    ],
)
def test_what_must_arrive_as_it_is_does_so(
    cdn_bucket: CdnBucket, said: dict[str, str | bytes]
) -> None:
    keep(cdn_bucket, **said)  # type: ignore[arg-type]  # options by name
    found = cdn_bucket.get("/a.js", accept_encoding=BROWSER)
    assert found.body == said.get("body", TEXT)
    assert found.headers.get("content-encoding", "") == said.get("Content_Encoding", "")
    assert found.headers["etag"] == '"v1"'
    assert "vary" not in found.headers


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (200, {"Cache-Control": "private, max-age=600"}),
        (200, {"Cache-Control": "no-store"}),
        (200, {"Cache-Control": "max-age=600", "Set-Cookie": "session=1"}),
        (404, {"Cache-Control": "max-age=600"}),
    ],
)
def test_a_response_that_is_not_for_all_or_no_success_is_handed_on(
    cdn_bucket: CdnBucket, status: int, fields: dict[str, str]
) -> None:
    fields = {**fields, "Content-Type": "text/html", "ETag": '"v1"'}
    cdn_bucket.origin.said["/a.js"] = OriginAnswer(status, fields, TEXT)
    for _ in range(3):
        found = cdn_bucket.get("/a.js", accept_encoding=BROWSER)
        assert (found.status, found.body, found.headers["etag"]) == (status, TEXT, '"v1"')
        assert found.headers.keys().isdisjoint({"content-encoding", "vary"})


def test_what_is_kept_for_each_cookie_is_not_compressed(at_own_host: CdnBucket) -> None:
    fields = {"host": host_of(at_own_host), "accept-encoding": BROWSER}

    def coding() -> str:
        found = send(at_own_host.cluster.url, "GET", "/a.js", fields)
        return found.headers.get("content-encoding", "")

    keep(at_own_host)
    assert coding() == "br"
    at_own_host.switch(forwarded_headers=["cookie"])  # type: ignore[arg-type]  # options by name
    assert [coding() for _ in range(3)] == [""] * 3


def test_the_origin_s_own_coding_is_left_alone(cdn_bucket: CdnBucket) -> None:
    packed = gzip.compress(TEXT)
    fields = {"Content_Encoding": "gzip", "Vary": "Accept-Encoding", "Content_Type": "text/css"}
    cdn_bucket.respond("/a.css", "max-age=600", packed, ETag='"gz"', **fields)
    for _ in range(3):
        found = cdn_bucket.get("/a.css", accept_encoding="br, gzip")
        assert (found.body, found.headers["content-encoding"]) == (packed, "gzip")
        assert (found.headers["etag"], found.headers["vary"]) == ('"gz"', "Accept-Encoding")


def test_a_purge_and_a_new_version_end_every_coding(cluster: Cluster, keys: Keys) -> None:
    row = cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "site", "is_public": True})
    signer = Signer(keys, cluster.url)
    tenant = {"organization_id": keys.organization_id, "environment_pk": keys.environment_pk}
    path = f"/p/{row['public_name']}/a.css"

    def bodies() -> set[bytes]:
        answers = [
            (coding, send(cluster.url, "GET", path, {"accept-encoding": coding}))
            for coding in ("br", "zstd", "gzip", "")
        ]
        assert all(found.headers.get("content-encoding", "") == name for name, found in answers)
        return {DECODED[name](found.body) for name, found in answers}

    for text in (TEXT, TEXT.replace(b"again", b"other"), TEXT):
        signer.send("PUT", "/site/a.css", text, {"content-type": "text/css"})
        assert bodies() == {text}
    assert cluster.call("POST", "/v1/purge", {**tenant, "keys": ["site/a.css"]})
    assert bodies() == {TEXT}
    signer.send("DELETE", "/site/a.css")
    assert send(cluster.url, "GET", path, {"accept-encoding": "br"}).status == 404


def test_a_signed_read_gets_the_bytes(cluster: Cluster, keys: Keys) -> None:
    cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "site", "is_public": True})
    signer = Signer(keys, cluster.url)
    signer.send("PUT", "/site/a.css", TEXT, {"content-type": "text/css"})
    found = signer.send("GET", "/site/a.css", headers={"accept-encoding": BROWSER})
    assert (found.body, "vary" in found.headers) == (TEXT, False)
