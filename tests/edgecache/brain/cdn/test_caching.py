"""Plain HTTP clients of a real brain with real workers and an HTTP origin."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import psycopg
import pytest

from tests.edgecache.brain.cdn.conftest import Asked, CdnBucket, OriginAnswer
from tests.edgecache.brain.cdn.raw_origin import RawOrigin, raw_bucket
from tests.edgecache.brain.support import ClusterRows
from tests.edgecache.cluster import Cluster

WAIT_S = 20.0


def until(holds: Callable[[], bool]) -> None:
    """Wait for what happens in the background."""
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_a_fresh_response_is_fetched_once(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"body", Content_Type="text/css", ETag='"v1"')
    first = cdn_bucket.get("/a")
    assert (first.status, first.body) == (200, b"body")
    assert first.headers["cache-status"] == "Zonal; fwd=uri-miss; stored"
    until(lambda: "hit" in cdn_bucket.get("/a").headers["cache-status"])
    again = cdn_bucket.get("/a")
    assert (again.body, again.headers["content-type"], again.headers["etag"]) == (
        b"body",
        "text/css",
        '"v1"',
    )
    assert int(again.headers["age"]) >= 0
    assert again.headers["cache-status"].startswith("Zonal; hit; ttl=")
    assert cdn_bucket.asked("/a") == 1


def test_a_stale_response_is_revalidated(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=0", b"body", ETag='"v1"')
    assert cdn_bucket.get("/a").body == b"body"
    until(lambda: "fwd-status=304" in cdn_bucket.get("/a").headers["cache-status"])
    assert cdn_bucket.get("/a").body == b"body"
    assert cdn_bucket.origin.asked[-1].headers["if-none-match"] == '"v1"'
    cdn_bucket.respond("/a", "max-age=0", b"newer", ETag='"v2"')
    assert cdn_bucket.get("/a").body == b"newer"


def test_a_stale_response_may_be_used_while_it_is_revalidated(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=0, stale-while-revalidate=600", b"old", ETag='"v1"')
    cdn_bucket.get("/a")
    until(lambda: "hit" in cdn_bucket.get("/a").headers["cache-status"])
    cdn_bucket.respond("/a", "max-age=600", b"new", ETag='"v2"')
    assert cdn_bucket.get("/a").body == b"old"
    until(lambda: cdn_bucket.get("/a").body == b"new")


def test_a_stale_response_is_used_when_the_origin_fails(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=0, stale-if-error=600", b"body", ETag='"v1"')
    cdn_bucket.respond("/b", "max-age=0, must-revalidate, stale-if-error=600", b"body", ETag='"v1"')
    for path in ("/a", "/b"):
        cdn_bucket.get(path)
        until(cdn_bucket.says("304", path))
        cdn_bucket.origin.said[path] = OriginAnswer(500, {}, b"the error")
    stood = cdn_bucket.get("/a")
    assert (stood.status, stood.body) == (200, b"body")
    assert stood.headers["cache-status"] == "Zonal; hit; detail=stale-if-error"
    # It must not be used stale: what the origin says is handed on.
    assert (cdn_bucket.get("/b").status, cdn_bucket.get("/b").body) == (500, b"the error")


@pytest.mark.parametrize("control", ["no-store", "private", "private, max-age=600"])
def test_a_response_that_must_not_be_stored_is_fetched_each_time(
    cdn_bucket: CdnBucket, control: str
) -> None:
    cdn_bucket.respond("/a", control, b"mine")
    answers = [cdn_bucket.get("/a") for _ in range(3)]
    assert [answer.body for answer in answers] == [b"mine"] * 3
    assert all("stored" not in answer.headers["cache-status"] for answer in answers)
    assert cdn_bucket.asked("/a") == 3


def test_each_variant_is_stored_separately(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"german", Vary="Accept-Language")
    assert cdn_bucket.get("/a", accept_language="de").body == b"german"
    cdn_bucket.respond("/a", "max-age=600", b"english", Vary="Accept-Language")
    assert cdn_bucket.get("/a", accept_language="en").body == b"english"
    for language, body in (("de", b"german"), ("en", b"english")):
        until(cdn_bucket.says("hit", "/a", accept_language=language))
        number = cdn_bucket.asked("/a")
        assert cdn_bucket.get("/a", accept_language=language).body == body
        assert cdn_bucket.asked("/a") == number


def test_a_cookie_of_the_origin_is_not_sent_to_other_clients(cdn_bucket: CdnBucket) -> None:
    for path, control in (("/a", "max-age=600"), ("/b", "public, max-age=600")):
        cdn_bucket.respond(path, control, b"x", Set_Cookie="session=1")
        for _ in range(2):
            assert "set-cookie" not in cdn_bucket.get(path).headers


def test_each_query_has_its_own_response(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a?v=1", "max-age=600", b"one")
    cdn_bucket.respond("/a?v=2", "max-age=600", b"two")
    assert cdn_bucket.get("/a?v=1").body == b"one"
    assert cdn_bucket.get("/a?v=2").body == b"two"
    assert cdn_bucket.get("/a").status == 404


def test_purging_a_key_purges_all_variants(cdn_bucket: CdnBucket) -> None:
    for query in ("?v=1", "?v=2"):
        cdn_bucket.respond(f"/a{query}", "max-age=600", b"old")
        cdn_bucket.get(f"/a{query}")
        until(cdn_bucket.says("hit", f"/a{query}"))
        cdn_bucket.respond(f"/a{query}", "max-age=600", b"new")
    organization, environment = (pair.partition("=")[2] for pair in cdn_bucket.scope.split("&"))
    tenant = {"organization_id": int(organization), "environment_pk": int(environment)}
    done = cdn_bucket.cluster.call("POST", "/v1/purge", tenant | {"keys": ["cdn-bucket/a"]})
    assert done["objects_purged"] == 2
    assert [cdn_bucket.get(f"/a{query}").body for query in ("?v=1", "?v=2")] == [b"new", b"new"]


@pytest.mark.parametrize("query", ["v=1", "v=%2F&" + "x" * 700])
def test_a_purge_may_name_a_query(cdn_bucket: CdnBucket, query: str) -> None:
    for path in (f"/a?{query}", "/a?v=2", "/a"):
        cdn_bucket.respond(path, "max-age=600", b"old")
        cdn_bucket.get(path)
        until(cdn_bucket.says("hit", path))
        cdn_bucket.respond(path, "max-age=600", b"new")
    organization, environment = (pair.partition("=")[2] for pair in cdn_bucket.scope.split("&"))
    tenant = {"organization_id": int(organization), "environment_pk": int(environment)}
    body = {**tenant, "keys": [f"cdn-bucket/a?{query}", "cdn-bucket/a?v=3"]}
    counts = [
        cdn_bucket.cluster.call("POST", "/v1/purge", body | {"preview": preview})["objects_purged"]
        for preview in (True, False, False)
    ]
    assert counts == [1, 1, 0]
    bodies = [cdn_bucket.get(path).body for path in (f"/a?{query}", "/a?v=2", "/a")]
    assert bodies == [b"new", b"old", b"old"]


def test_a_conditional_request_is_answered_with_304(cdn_bucket: CdnBucket) -> None:
    changed = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    cdn_bucket.respond(
        "/a",
        "max-age=600",
        b"0123456789",
        ETag='"v1"',
        Last_Modified=format_datetime(changed, True),
    )
    cdn_bucket.get("/a")
    later = format_datetime(changed + timedelta(seconds=1), usegmt=True)
    for headers in ({"if_none_match": 'W/"v1"'}, {"if_modified_since": later}):
        answer = cdn_bucket.get("/a", **headers)
        assert (answer.status, answer.body) == (304, b"")
        assert answer.headers["etag"] == '"v1"'
    assert cdn_bucket.get("/a", if_match='"v2"').status == 412
    assert cdn_bucket.get("/a", if_none_match='"v2"').status == 200


def test_a_stored_response_is_sent_in_ranges(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"0123456789", ETag='"v1"')
    cdn_bucket.get("/a")
    part = cdn_bucket.get("/a", range="bytes=2-4")
    assert (part.status, part.body) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    assert cdn_bucket.get("/a", range="bytes=2-4", if_range='"v2"').body == b"0123456789"
    assert cdn_bucket.get("/a", range="bytes=50-").status == 416
    assert cdn_bucket.get("/a", "HEAD").headers["content-length"] == "10"


def test_a_response_of_unknown_length_arrives_whole(cdn_bucket: CdnBucket) -> None:
    body = b"z" * 300_000
    fields = {"Cache-Control": "max-age=600"}
    cdn_bucket.origin.said["/a"] = OriginAnswer(200, fields, body, has_length=False)
    assert cdn_bucket.get("/a").body == body
    until(lambda: "hit" in cdn_bucket.get("/a").headers["cache-status"])
    assert cdn_bucket.get("/a").headers["content-length"] == str(len(body))


@pytest.mark.parametrize("vary", ["", "Accept-Language"])
def test_a_thousand_requests_for_an_uncached_url_cost_one_fetch_per_variant(
    cdn_bucket: CdnBucket, vary: str
) -> None:
    cdn_bucket.respond("/cold", "max-age=600", bytes(100_000), **({"Vary": vary} if vary else {}))
    go_on = threading.Event()

    def hold(_asked: Asked) -> None:
        assert go_on.wait(20)

    cdn_bucket.origin.meanwhile = hold
    waiting = 0

    async def one(language: str) -> bytes:
        nonlocal waiting
        reader, writer = await asyncio.open_connection("127.0.0.1", cdn_bucket.cluster.port)
        lines = [f"GET /p/{cdn_bucket.public_name}/cold HTTP/1.1", "Host: x", "Connection: close"]
        request = "\r\n".join([*lines, f"Accept-Language: {language}", "", ""])
        writer.write(request.encode())
        waiting += 1
        if waiting == 1000:
            go_on.set()
        answer = await reader.read()
        writer.close()
        return answer

    async def main() -> list[bytes]:
        return await asyncio.gather(*(one("de" if n % 2 else "en") for n in range(1000)))

    answers = asyncio.run(main())
    assert {answer.partition(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 200 OK"}
    assert {answer.partition(b"\r\n\r\n")[2] for answer in answers} == {bytes(100_000)}
    # That it varies is learned from a response that was asked for without the header.
    assert cdn_bucket.asked("/cold") == (3 if vary else 1)


def test_a_crowd_for_an_origin_that_was_not_used_yet_reads_it_once(cdn_bucket: CdnBucket) -> None:
    url = cdn_bucket.cluster.database_url
    rows = ClusterRows(url)
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    paths = [f"/new{number}" for number in range(50)]
    for path in paths:
        cdn_bucket.respond(path, "max-age=600")
    with ThreadPoolExecutor(len(paths)) as pool, psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE brain_origin")
        crowd = [pool.submit(cdn_bucket.get, path) for path in paths]
        until(lambda: rows.value(waiting))
        # The brain has taken up the requests that came before this one.
        cdn_bucket.cluster.call("GET", "/health")
        assert rows.value(waiting) == 1
        holder.rollback()
        assert {one.result().status for one in crowd} == {200}


def test_a_response_for_one_variant_does_not_split_the_others(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/page", "max-age=600", b"page", Vary="Accept-Language")
    # Vary is known from now on.
    cdn_bucket.get("/page", accept_language="fr")
    came, go_on = threading.Event(), threading.Event()

    def hold(asked: Asked) -> None:
        if asked.headers.get("accept-language") == "en":
            came.set()
            assert go_on.wait(20)

    cdn_bucket.origin.meanwhile = hold
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cdn_bucket.get, "/page", accept_language="en")
        assert came.wait(20)
        until(cdn_bucket.says("hit", "/page", accept_language="de"))
        second = pool.submit(cdn_bucket.get, "/page", accept_language="en")
        time.sleep(0.3)
        go_on.set()
        assert first.result(20).body == second.result(20).body == b"page"
    assert sorted(
        asked.headers.get("accept-language", "") for asked in cdn_bucket.origin.asked
    ) == ["", "de", "en", "fr"]


def test_each_answer_is_counted_as_its_cache_status_says(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"body", ETag='"v1"')
    until(cdn_bucket.says("hit", "/a"))
    until(cdn_bucket.says("hit", "/none"))
    cdn_bucket.respond("/empty", "max-age=600", b"")
    until(cdn_bucket.says("hit", "/empty"))
    cdn_bucket.respond("/mine", "no-store", b"mine")
    before = cdn_bucket.cluster.call("GET", "/v1/metrics")
    answers = [
        cdn_bucket.get("/a"),
        cdn_bucket.get("/a", if_none_match='"v1"'),
        cdn_bucket.get("/a", "HEAD"),
        cdn_bucket.get("/none"),
        cdn_bucket.get("/none"),
        cdn_bucket.get("/none", "HEAD"),
        cdn_bucket.get("/a", if_match='"v2"'),
        cdn_bucket.get("/a", range="bytes=9-"),
        cdn_bucket.get("/a", range="bytes=1-2"),
        cdn_bucket.get("/empty"),
        cdn_bucket.get("/empty", "HEAD"),
        cdn_bucket.get("/mine"),
        cdn_bucket.get("/mine", "HEAD"),
        cdn_bucket.get("/mine", if_none_match="*"),
        cdn_bucket.get("/mine", if_match='"v2"'),
    ]
    said = [answer.headers["cache-status"] for answer in answers]
    statuses = [200, 304, 200, 404, 404, 404, 412, 416, 206, 200, 200, 200, 200, 304, 412]
    assert [answer.status for answer in answers] == statuses
    hits = sum("; hit" in text for text in said)
    assert hits + sum("; fwd=" in text for text in said) == len(answers)
    assert hits >= 8

    def is_counted() -> bool:
        after = cdn_bucket.cluster.call("GET", "/v1/metrics")
        return (
            after["total_hits"] - before["total_hits"],
            after["total_misses"] - before["total_misses"],
        ) == (hits, len(answers) - hits)

    until(is_counted)


def test_what_a_concurrent_request_fetched_is_collapsed_and_a_miss(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"body")
    metrics = cdn_bucket.cluster.call("GET", "/v1/metrics")
    came, go_on = threading.Event(), threading.Event()

    def hold(_asked: Asked) -> None:
        came.set()
        assert go_on.wait(20)

    cdn_bucket.origin.meanwhile = hold
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cdn_bucket.get, "/a")
        assert came.wait(20)
        second = pool.submit(cdn_bucket.get, "/a")
        time.sleep(0.3)
        go_on.set()
        said = [each.result(20).headers["cache-status"] for each in (first, second)]
    assert said == ["Zonal; fwd=uri-miss; stored", "Zonal; fwd=uri-miss; stored; collapsed"]
    assert cdn_bucket.asked("/a") == 1
    until(
        lambda: (
            cdn_bucket.cluster.call("GET", "/v1/metrics")["total_misses"]
            == metrics["total_misses"] + 2
        )
    )


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"Zonal; fwd=uri-miss\r\n"),
        (b"HTTP/1.0 200 OK\r\n", b"Zonal; fwd=uri-miss\r\n"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n", b"Zonal; fwd=uri-miss; stored\r\n"),
    ],
)
def test_stored_is_said_only_of_a_body_that_is_kept(
    cluster: Cluster, head: bytes, status: bytes
) -> None:
    answer = head + b"Cache-Control: max-age=600\r\n\r\nbody"
    with RawOrigin(answer, closes=True) as origin:
        bucket = raw_bucket(cluster, origin)
        assert b"cache-status: " + status in bucket.raw("/a").lower().replace(b"zonal", b"Zonal")


@pytest.mark.parametrize("has_length", [True, False])
def test_passed_through_responses_are_counted_and_logged(
    cdn_bucket: CdnBucket, has_length: bool
) -> None:
    metrics = cdn_bucket.cluster.call("GET", "/v1/metrics")
    body = b"z" * 70_000
    cdn_bucket.origin.said["/a%20b?secret=1"] = cdn_bucket.origin.said["/a%20b"] = OriginAnswer(
        200, {"Cache-Control": "no-store"}, body, has_length=has_length
    )
    assert cdn_bucket.get("/a%20b?secret=1").body == body
    for _ in range(2):
        assert cdn_bucket.get("/a%20b").body == body
    after = cdn_bucket.cluster.call("GET", "/v1/metrics")
    assert after["total_misses"] - metrics["total_misses"] == 3
    assert after["bytes_served"] - metrics["bytes_served"] >= 3 * len(body)

    def lines() -> list[str]:
        found = cdn_bucket.cluster.log.splitlines()
        return [line for line in found if cdn_bucket.public_name in line and '"key":"a b"' in line]

    until(lambda: len(lines()) == 3)
    assert '"operation":"CDN"' in lines()[0]
    assert "secret" not in "".join(lines())


def test_a_404_is_cached_for_a_moment_unless_the_origin_forbids_it(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.origin.said["/fleeting"] = OriginAnswer(404, {"Cache-Control": "no-store"})
    for path in ("/absent", "/fleeting"):
        for _ in range(3):
            assert cdn_bucket.get(path).status == 404
    assert (cdn_bucket.asked("/absent"), cdn_bucket.asked("/fleeting")) == (1, 3)
    cdn_bucket.respond("/absent", "max-age=600", b"here now")
    until(lambda: cdn_bucket.get("/absent").body == b"here now")


def test_a_head_asks_the_origin_for_the_head_alone(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"0123456789", ETag='"v1"')
    for _ in range(2):
        got = cdn_bucket.get("/a", "HEAD")
        assert (got.status, got.headers["content-length"], got.body) == (200, "10", b"")
        assert got.headers["cache-status"] == "Zonal; fwd=uri-miss"
    assert [asked.method for asked in cdn_bucket.origin.asked] == ["HEAD", "HEAD"]
    assert cdn_bucket.get("/a").body == b"0123456789"
    until(cdn_bucket.says("hit", "/a"))
    assert "hit" in cdn_bucket.get("/a", "HEAD").headers["cache-status"]


def test_a_head_confirms_what_is_stored(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=0", b"0123456789", ETag='"v1"')
    cdn_bucket.get("/a")
    until(lambda: "fwd-status=304" in cdn_bucket.get("/a").headers["cache-status"])
    cdn_bucket.respond("/a", "max-age=600", b"0123456789", ETag='"v1"')
    got = cdn_bucket.get("/a", "HEAD")
    assert (got.status, got.headers["content-length"]) == (200, "10")
    assert cdn_bucket.origin.asked[-1].method == "HEAD"
    assert "hit" in cdn_bucket.get("/a").headers["cache-status"]


def test_only_if_cached_never_reaches_the_origin(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"x")
    assert cdn_bucket.get("/a", cache_control="only-if-cached").status == 504
    assert cdn_bucket.asked("/a") == 0


def test_private_and_absent_buckets_look_the_same(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"x")
    cdn_bucket.switch(is_public=False)
    private = cdn_bucket.get("/a")
    cdn_bucket.public_name = "absent"
    absent = cdn_bucket.get("/a")
    assert (
        (absent.status, absent.body) == (private.status, private.body) == (404, b"404 Not Found\n")
    )


def test_unsafe_methods_are_refused(cdn_bucket: CdnBucket) -> None:
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]:
        answer = cdn_bucket.get("/a", method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
        assert cdn_bucket.origin.asked == []


def test_invalid_paths_are_refused(cdn_bucket: CdnBucket) -> None:
    for path in ["/../a", "/a/%2e%2e/b", "/%ff", "/a%00b"]:
        assert cdn_bucket.get(path).status == 400
        assert cdn_bucket.origin.asked == []
