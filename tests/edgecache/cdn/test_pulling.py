"""Plain HTTP clients before a real brain, real workers and an origin that speaks HTTP."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.edgecache.cdn.conftest import Asked, Pulled, Said

WAIT_S = 20.0


def until(holds: Callable[[], bool]) -> None:
    """Wait for what happens behind an answer."""
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_a_fresh_answer_is_asked_for_once(pulled: Pulled) -> None:
    pulled.tell("/a", "max-age=600", b"body", Content_Type="text/css", ETag='"v1"')
    first = pulled.get("/a")
    assert (first.status, first.body) == (200, b"body")
    assert first.headers["cache-status"] == "Zonal; fwd=uri-miss; stored"
    until(lambda: "hit" in pulled.get("/a").headers["cache-status"])
    again = pulled.get("/a")
    assert (again.body, again.headers["content-type"], again.headers["etag"]) == (
        b"body",
        "text/css",
        '"v1"',
    )
    assert int(again.headers["age"]) >= 0
    assert again.headers["cache-status"].startswith("Zonal; hit; ttl=")
    assert pulled.asked("/a") == 1


def test_a_stale_answer_is_confirmed_and_not_sent_again(pulled: Pulled) -> None:
    pulled.tell("/a", "max-age=0", b"body", ETag='"v1"')
    assert pulled.get("/a").body == b"body"
    until(lambda: "fwd-status=304" in pulled.get("/a").headers["cache-status"])
    assert pulled.get("/a").body == b"body"
    assert pulled.origin.asked[-1].headers["if-none-match"] == '"v1"'
    pulled.tell("/a", "max-age=0", b"newer", ETag='"v2"')
    assert pulled.get("/a").body == b"newer"


def test_a_stale_answer_may_be_used_while_a_new_one_is_fetched(pulled: Pulled) -> None:
    pulled.tell("/a", "max-age=0, stale-while-revalidate=600", b"old", ETag='"v1"')
    pulled.get("/a")
    until(lambda: "hit" in pulled.get("/a").headers["cache-status"])
    pulled.tell("/a", "max-age=600", b"new", ETag='"v2"')
    assert pulled.get("/a").body == b"old"
    until(lambda: pulled.get("/a").body == b"new")


def test_a_stale_answer_stands_in_for_an_origin_that_fails(pulled: Pulled) -> None:
    pulled.tell("/a", "max-age=0, stale-if-error=600", b"body", ETag='"v1"')
    pulled.tell("/b", "max-age=0, must-revalidate, stale-if-error=600", b"body", ETag='"v1"')
    for path in ("/a", "/b"):
        pulled.get(path)
        until(pulled.says("304", path))
        pulled.origin.said[path] = Said(500, {}, b"secret inside")
    stood = pulled.get("/a")
    assert (stood.status, stood.body) == (200, b"body")
    assert stood.headers["cache-status"] == "Zonal; hit; detail=stale-if-error"
    refused = pulled.get("/b")
    assert refused.status == 502
    assert b"secret" not in refused.body


@pytest.mark.parametrize("control", ["no-store", "private", "private, max-age=600"])
def test_what_may_not_be_kept_is_asked_for_each_time(pulled: Pulled, control: str) -> None:
    pulled.tell("/a", control, b"mine")
    answers = [pulled.get("/a") for _ in range(3)]
    assert [answer.body for answer in answers] == [b"mine"] * 3
    assert all("stored" not in answer.headers["cache-status"] for answer in answers)
    assert pulled.asked("/a") == 3


def test_each_kind_that_vary_names_is_kept_by_itself(pulled: Pulled) -> None:
    pulled.tell("/a", "max-age=600", b"german", Vary="Accept-Language")
    assert pulled.get("/a", accept_language="de").body == b"german"
    pulled.tell("/a", "max-age=600", b"english", Vary="Accept-Language")
    assert pulled.get("/a", accept_language="en").body == b"english"
    for language, body in (("de", b"german"), ("en", b"english")):
        until(pulled.says("hit", "/a", accept_language=language))
        number = pulled.asked("/a")
        assert pulled.get("/a", accept_language=language).body == body
        assert pulled.asked("/a") == number


def test_nothing_of_a_client_reaches_the_origin_but_what_it_takes(pulled: Pulled) -> None:
    pulled.tell("/a", "max-age=600", b"for all")
    pulled.get("/a", cookie="session=1", authorization="Basic x", x_own="1", accept="text/css")
    told = pulled.origin.asked[-1].headers
    assert told["accept"] == "text/css"
    assert told.keys().isdisjoint({"cookie", "authorization", "x-own", "x-forwarded-for"})


def test_a_cookie_of_the_origins_is_not_given_to_the_next_one(pulled: Pulled) -> None:
    pulled.tell("/a", "max-age=600", b"x", Set_Cookie="session=1")
    for _ in range(2):
        assert "set-cookie" not in pulled.get("/a").headers


def test_queries_are_answers_of_their_own(pulled: Pulled) -> None:
    pulled.tell("/a?v=1", "max-age=600", b"one")
    pulled.tell("/a?v=2", "max-age=600", b"two")
    assert pulled.get("/a?v=1").body == b"one"
    assert pulled.get("/a?v=2").body == b"two"
    assert pulled.get("/a").status == 404


def test_a_purge_of_the_key_takes_every_kind_of_it(pulled: Pulled) -> None:
    for query in ("?v=1", "?v=2"):
        pulled.tell(f"/a{query}", "max-age=600", b"old")
        pulled.get(f"/a{query}")
        until(pulled.says("hit", f"/a{query}"))
        pulled.tell(f"/a{query}", "max-age=600", b"new")
    organization, environment = (pair.partition("=")[2] for pair in pulled.scope.split("&"))
    tenant = {"organization_id": int(organization), "environment_pk": int(environment)}
    done = pulled.cluster.call("POST", "/v1/purge", tenant | {"keys": ["pulled/a"]})
    assert done["objects_purged"] == 2
    assert [pulled.get(f"/a{query}").body for query in ("?v=1", "?v=2")] == [b"new", b"new"]


def test_a_client_that_has_it_is_told_so(pulled: Pulled) -> None:
    changed = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    pulled.tell(
        "/a",
        "max-age=600",
        b"0123456789",
        ETag='"v1"',
        Last_Modified=format_datetime(changed, True),
    )
    pulled.get("/a")
    later = format_datetime(changed + timedelta(seconds=1), usegmt=True)
    for headers in ({"if_none_match": 'W/"v1"'}, {"if_modified_since": later}):
        answer = pulled.get("/a", **headers)
        assert (answer.status, answer.body) == (304, b"")
        assert answer.headers["etag"] == '"v1"'
    assert pulled.get("/a", if_match='"v2"').status == 412
    assert pulled.get("/a", if_none_match='"v2"').status == 200


def test_ranges_of_an_answer_that_is_kept(pulled: Pulled) -> None:
    pulled.tell("/a", "max-age=600", b"0123456789", ETag='"v1"')
    pulled.get("/a")
    part = pulled.get("/a", range="bytes=2-4")
    assert (part.status, part.body) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    assert pulled.get("/a", range="bytes=2-4", if_range='"v2"').body == b"0123456789"
    assert pulled.get("/a", range="bytes=50-").status == 416
    assert pulled.get("/a", "HEAD").headers["content-length"] == "10"


def test_an_answer_of_unknown_length_comes_whole(pulled: Pulled) -> None:
    body = b"z" * 300_000
    fields = {"Cache-Control": "max-age=600"}
    pulled.origin.said["/a"] = Said(200, fields, body, has_length=False)
    assert pulled.get("/a").body == body
    until(lambda: "hit" in pulled.get("/a").headers["cache-status"])
    assert pulled.get("/a").headers["content-length"] == str(len(body))


@pytest.mark.parametrize("vary", ["", "Accept-Language"])
def test_a_thousand_who_ask_for_a_cold_url_cost_a_fetch_for_each_kind(
    pulled: Pulled, vary: str
) -> None:
    pulled.tell("/cold", "max-age=600", bytes(100_000), **({"Vary": vary} if vary else {}))
    go_on = threading.Event()

    def hold(_asked: Asked) -> None:
        assert go_on.wait(20)

    pulled.origin.meanwhile = hold
    waiting = 0

    async def one(language: str) -> bytes:
        nonlocal waiting
        reader, writer = await asyncio.open_connection("127.0.0.1", pulled.cluster.port)
        lines = [f"GET /p/{pulled.public_name}/cold HTTP/1.1", "Host: x", "Connection: close"]
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
    assert pulled.asked("/cold") == (2 if vary else 1)


def test_what_comes_in_for_some_does_not_part_the_others(pulled: Pulled) -> None:
    pulled.tell("/page", "max-age=600", b"page", Vary="Accept-Language")
    # From now on it is known to vary.
    pulled.get("/page", accept_language="fr")
    came, go_on = threading.Event(), threading.Event()

    def hold(asked: Asked) -> None:
        if asked.headers["accept-language"] == "en":
            came.set()
            assert go_on.wait(20)

    pulled.origin.meanwhile = hold
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(pulled.get, "/page", accept_language="en")
        assert came.wait(20)
        until(pulled.says("hit", "/page", accept_language="de"))
        second = pool.submit(pulled.get, "/page", accept_language="en")
        time.sleep(0.3)
        go_on.set()
        assert first.result(20).body == second.result(20).body == b"page"
    assert pulled.asked("/page") == 3


@pytest.mark.parametrize("has_length", [True, False])
def test_what_goes_through_is_counted_and_logged(pulled: Pulled, has_length: bool) -> None:
    metrics = pulled.cluster.call("GET", "/v1/metrics")
    body = b"z" * 70_000
    pulled.origin.said["/a b"] = pulled.origin.said["/a%20b"] = Said(
        200, {"Cache-Control": "no-store"}, body, has_length=has_length
    )
    assert pulled.get("/a%20b?secret=1").status == 404
    for _ in range(3):
        assert pulled.get("/a%20b").body == body
    after = pulled.cluster.call("GET", "/v1/metrics")
    assert after["total_misses"] - metrics["total_misses"] == 3
    assert after["bytes_served"] - metrics["bytes_served"] >= 3 * len(body)

    def lines() -> list[str]:
        found = pulled.cluster.log.splitlines()
        return [line for line in found if pulled.public_name in line and '"key":"a b"' in line]

    until(lambda: len(lines()) == 4)
    assert '"operation":"CDN"' in lines()[0]
    assert "secret" not in "".join(lines())


def test_a_404_is_not_asked_for_again_at_once_unless_the_origin_wants_it(pulled: Pulled) -> None:
    pulled.origin.said["/fleeting"] = Said(404, {"Cache-Control": "no-store"})
    for path in ("/absent", "/fleeting"):
        for _ in range(3):
            assert pulled.get(path).status == 404
    assert (pulled.asked("/absent"), pulled.asked("/fleeting")) == (1, 3)
    pulled.tell("/absent", "max-age=600", b"here now")
    until(lambda: pulled.get("/absent").body == b"here now")


def test_who_wants_no_more_than_the_cache_gets_no_more(pulled: Pulled) -> None:
    pulled.tell("/a", "max-age=600", b"x")
    assert pulled.get("/a", cache_control="only-if-cached").status == 504
    assert pulled.asked("/a") == 0


def test_what_is_not_there_and_what_is_not_public_look_the_same(pulled: Pulled) -> None:
    absent = pulled.get("/absent")
    pulled.tell("/a", "max-age=600", b"x")
    pulled.switch(is_public=False)
    private = pulled.get("/a")
    assert (
        (absent.status, absent.body) == (private.status, private.body) == (404, b"404 Not Found\n")
    )


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(pulled: Pulled, method: str) -> None:
    answer = pulled.get("/a", method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert pulled.origin.asked == []


@pytest.mark.parametrize("path", ["/../a", "/a/%2e%2e/b", "/%ff", "/a%00b", "", "/"])
def test_odd_paths_are_not_found(pulled: Pulled, path: str) -> None:
    assert pulled.get(path).status == 404
    assert pulled.origin.asked == []
