"""What an origin says is handed on as it is: statuses, headers, bodies, and the path to it."""

from urllib.parse import parse_qsl

import pytest

from tests.edgecache.brain.cdn.conftest import CdnBucket, OriginAnswer
from tests.edgecache.brain.cdn.raw_origin import RawOrigin, raw_bucket
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.cluster import Cluster

HEADERS = {
    "Content-Security-Policy": "default-src 'self'",
    "Access-Control-Allow-Origin": "*",
    "Vary": "Origin",
    "X-Own": "1",
    "Content-Type": "text/html",
}


def test_a_response_that_is_not_kept_has_no_invented_validator(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "no-store", b"old")
    first = cdn_bucket.get("/a")
    assert first.headers.keys().isdisjoint({"etag", "last-modified"})
    cdn_bucket.respond("/a", "no-store", b"new")
    date = first.headers["date"]
    for condition in ({"if_none_match": '""'}, {"if_modified_since": date}):
        answer = cdn_bucket.get("/a", **condition)
        assert (answer.status, answer.body) == (200, b"new")


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        ("/m/b;v=2", "/m/b;v=2"),
        ("/a%2Fb", "/a%2Fb"),
        ("/a%2fb", "/a%2fb"),
        ("/a%3Bb;c", "/a%3Bb;c"),
        ("/a//b/", "/a//b/"),
        ("/a+b%2Bc%20d", "/a+b%2Bc%20d"),
        ("/%C3%A9", "/%C3%A9"),
        ("/a%25b", "/a%25b"),
        ("/a?b;c=%2F&d=a/b?c", "/a?b;c=%2F&d=a/b?c"),
        ("/a|b", "/a%7Cb"),
    ],
)
def test_the_path_reaches_the_origin_as_it_came(
    cdn_bucket: CdnBucket, sent: str, arrives: str
) -> None:
    cdn_bucket.respond(arrives, "max-age=600", b"this one")
    assert cdn_bucket.get(sent).body == b"this one"
    assert [asked.path for asked in cdn_bucket.origin.asked] == [arrives]


def test_paths_that_differ_only_in_their_encoding_are_kept_apart(cdn_bucket: CdnBucket) -> None:
    for path in ("/a/b", "/a%2Fb"):
        cdn_bucket.respond(path, "max-age=600", path.encode())
        cdn_bucket.get(path)
        until(cdn_bucket.says("hit", path))
    assert [cdn_bucket.get(path).body for path in ("/a/b", "/a%2Fb")] == [b"/a/b", b"/a%2Fb"]
    assert len(cdn_bucket.origin.asked) == 2


def test_a_path_that_may_leave_the_bucket_or_is_malformed_is_refused(cdn_bucket: CdnBucket) -> None:
    for path in [
        "/../a",
        "/a/%2e%2E/b",
        "/a/..;x=1/b",
        "/a%2f..%2fb",
        "/a/..%5cb",
        "/%zz",
        "/a%",
        "/a%0",
    ]:
        answer = cdn_bucket.get(path)
        assert (answer.status, answer.headers["cache-status"]) == (400, "Zonal; detail=key-refused")
        assert cdn_bucket.origin.asked == []


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_url_over_a_limit_is_too_long(cdn_bucket: CdnBucket, method: str) -> None:
    cdn_bucket.switch(forwards_writes=True)
    for path in (f"/q?{2049 * 'a'}", f"/{1025 * 'a'}", f"/{342 * '%E2%82%AC'}"):
        answer = cdn_bucket.get(path, method)
        assert (answer.status, answer.headers["cache-status"]) == (
            414,
            "Zonal; detail=url-too-long",
        )
    assert cdn_bucket.origin.asked == []
    for path in (f"/q?{2048 * 'a'}", f"/{1024 * 'a'}"):
        cdn_bucket.get(path, method)
    assert len(cdn_bucket.origin.asked) == 2


def test_the_root_of_an_origin_is_handed_on_kept_and_purged(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/", "max-age=600", b"home")
    cdn_bucket.respond("/?a=1", "max-age=600", b"asked")
    for path, body in (("/", b"home"), ("/?a=1", b"asked")):
        assert cdn_bucket.get(path).body == body
        until(cdn_bucket.says("hit", path))
    assert (cdn_bucket.asked("/"), cdn_bucket.asked("/?a=1")) == (1, 1)

    def purge(name: str) -> int:
        tenant = {key: int(value) for key, value in parse_qsl(cdn_bucket.scope)}
        done = cdn_bucket.cluster.call("POST", "/v1/purge", tenant | {"keys": [name]})
        return int(done["objects_purged"])

    assert purge("cdn-bucket/?a=1") == 1
    assert (cdn_bucket.get("/").body, cdn_bucket.get("/?a=1").body) == (b"home", b"asked")
    assert (cdn_bucket.asked("/"), cdn_bucket.asked("/?a=1")) == (1, 2)
    until(cdn_bucket.says("hit", "/?a=1"))
    assert purge("cdn-bucket/") == 2
    assert cdn_bucket.get("/").body == b"home"
    assert cdn_bucket.asked("/") == 2


@pytest.mark.parametrize("control", ["no-store", "max-age=600"])
def test_all_end_to_end_headers_are_handed_on(cdn_bucket: CdnBucket, control: str) -> None:
    fields = {**HEADERS, "Connection": "X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=5"}
    cdn_bucket.origin.said["/a"] = OriginAnswer(200, {**fields, "Cache-Control": control}, b"x")
    answer = cdn_bucket.get("/a")
    assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS
    assert answer.headers.keys().isdisjoint({"x-hop", "keep-alive"})


STATUSES = (201, 204, 300, 400, 401, 402, 403, 410, 418, 429, 451, 500, 501, 502, 503, 504, 599)


def test_every_status_is_handed_on(cdn_bucket: CdnBucket) -> None:
    for status in STATUSES:
        fields = {"Retry-After": "7", "WWW-Authenticate": "Basic", "Content-Type": "text/x"}
        body = b"" if status == 204 else b"what the origin said"
        cdn_bucket.origin.said[f"/{status}"] = OriginAnswer(status, fields, body)
        answer = cdn_bucket.get(f"/{status}")
        assert (answer.status, answer.body) == (status, body)
        assert {name: answer.headers[name.lower()] for name in fields} == fields
        assert cdn_bucket.asked(f"/{status}") == 1
        assert cdn_bucket.get(f"/{status}", "HEAD").status == status


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_handed_on_and_not_followed(cdn_bucket: CdnBucket, status: int) -> None:
    elsewhere = {"Location": "https://elsewhere.example/b?c"}
    cdn_bucket.origin.said["/out"] = OriginAnswer(status, elsewhere)
    cdn_bucket.origin.said["/in"] = OriginAnswer(status, {"Location": "/b%2Fc?d#e"})
    cdn_bucket.origin.said["/near"] = OriginAnswer(status, {"Location": "b"})
    places = {}
    for path in ("/out", "/in", "/near"):
        answer = cdn_bucket.get(path)
        assert answer.status == status
        places[path] = answer.headers["location"]
    assert places == {
        "/out": "https://elsewhere.example/b?c",
        "/in": f"/p/{cdn_bucket.public_name}/b%2Fc?d#e",
        "/near": "b",
    }
    assert len(cdn_bucket.origin.asked) == 3


@pytest.mark.parametrize("status", [301, 404, 410, 503])
def test_a_response_of_any_status_is_kept_while_it_is_fresh(
    cdn_bucket: CdnBucket, status: int
) -> None:
    fields = {"Cache-Control": "max-age=600", "X-Own": "1", "ETag": '"v"'}
    cdn_bucket.origin.said["/a"] = OriginAnswer(status, fields, b"sorry")
    cdn_bucket.get("/a")
    until(cdn_bucket.says("hit", "/a"))
    answer = cdn_bucket.get("/a", if_none_match='"v"', range="bytes=0-1")
    assert (answer.status, answer.body, answer.headers["x-own"]) == (status, b"sorry", "1")
    assert cdn_bucket.asked("/a") == 1


def test_a_404_without_freshness_is_kept_with_its_body_for_a_moment(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.origin.said["/a"] = OriginAnswer(404, {"X-Own": "1"}, b"nothing here")
    answers = [cdn_bucket.get("/a") for _ in range(3)]
    assert {(answer.status, answer.body, answer.headers["x-own"]) for answer in answers} == {
        (404, b"nothing here", "1")
    }
    assert cdn_bucket.asked("/a") == 1


def test_there_is_one_accept_encoding_and_one_date(cluster: Cluster) -> None:
    date = b"Sun, 06 Nov 1994 08:49:37 GMT"
    with RawOrigin(
        b"HTTP/1.1 200 OK\r\nDate: " + date + b"\r\nContent-Length: 1\r\n\r\nx"
    ) as origin:
        bucket = raw_bucket(cluster, origin)
        answer = bucket.raw("/a", "Accept-Encoding: br;q=1, gzip")
        assert answer.lower().count(b"\r\ndate:") == 1
        assert b"\r\ndate: " + date in answer
        assert origin.requests[0].lower().count(b"\r\naccept-encoding:") == 1


def test_bytes_go_on_as_they_come(cluster: Cluster) -> None:
    head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 20\r\n\r\n"
    with RawOrigin(head, b"ten bytes.", b"ten more..") as origin:
        bucket = raw_bucket(cluster, origin)
        with bucket.opened("/a") as client:
            # Each is sent when the client has the one before.
            assert b"200 OK" in client.until(b"\r\n\r\n")
            origin.go_on()
            assert client.until(b"ten bytes.") == b"ten bytes."
            origin.go_on()
            assert client.until(b"ten more..") == b"ten more.."


@pytest.mark.parametrize(
    ("head", "is_kept"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", True),
        (b"HTTP/1.1 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: close\r\n", False),
    ],
)
def test_a_response_that_ends_with_its_connection_may_be_kept(
    cluster: Cluster, head: bytes, is_kept: bool
) -> None:
    with RawOrigin(head + b"Cache-Control: max-age=600\r\n\r\nall of it", closes=True) as origin:
        bucket = raw_bucket(cluster, origin)
        assert bucket.get("/a").body == b"all of it"
        if is_kept:
            until(bucket.says("hit", "/a"))
            assert len(origin.requests) == 1
        else:
            # An immediate request may join the fetch before it has ended.
            until(lambda: bucket.get("/a").body == b"all of it" and len(origin.requests) > 1)


def test_a_response_that_breaks_off_is_never_kept(cluster: Cluster) -> None:
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: max-age=600\r\n\r\nhalf"
    with RawOrigin(head, resets=True) as origin:
        bucket = raw_bucket(cluster, origin)
        for _ in range(2):
            bucket.raw("/a")
        assert len(origin.requests) >= 2


def test_the_root_without_its_slash_leads_there(cdn_bucket: CdnBucket) -> None:
    root = f"/p/{cdn_bucket.public_name}/"
    for method in ("GET", "HEAD", "POST"):
        answer = cdn_bucket.get("?a=//b", method)
        assert (answer.status, answer.headers["location"]) == (308, f"{root}?a=//b")
    assert cdn_bucket.origin.asked == []
    cdn_bucket.switch(is_public=False)
    assert cdn_bucket.get("").status == 404


def test_a_response_that_is_stale_when_it_comes_says_so(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=60", Age="90")
    assert cdn_bucket.get("/a").headers["cache-status"].endswith("; detail=stale-on-arrival")
    cdn_bucket.respond("/b", "max-age=60", Age="30")
    assert "detail" not in cdn_bucket.get("/b").headers["cache-status"]
