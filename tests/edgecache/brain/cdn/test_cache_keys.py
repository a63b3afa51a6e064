"""What of a client's request goes to the origin, and what of it is part of the key."""

import urllib.error
from collections.abc import Callable

import pytest

from edgecache.brain.http_caching.cache_keys import KeyPolicy, Target, codings
from tests.edgecache.brain.cdn.conftest import CdnBucket, Origin, cdn_bucket_for
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.cluster import Cluster

POISON = {
    "x_forwarded_host": "evil.example",
    "x_forwarded_for": "1.2.3.4",
    "x_original_url": "/admin",
    "forwarded": "host=evil.example",
    "x_own": "1",
    "cookie": "session=1",
    "authorization": "Basic x",
    "user_agent": "evil",
    "if_none_match": '"v0"',
    "referer": "http://evil.example/",
    "connection": "x-own",
}


def test_no_header_that_is_not_in_the_key_reaches_the_origin(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "no-store", b"for all")
    cdn_bucket.get("/a", accept="text/css", accept_language="de", **POISON)
    headers = cdn_bucket.origin.asked[-1].headers
    assert headers.keys() == {"host", "user-agent", "cdn-loop", "accept-encoding"}
    assert headers["user-agent"] == "zonal"


@pytest.mark.parametrize("name", ["Accept", "Accept-Language"])
def test_a_header_that_vary_names_is_sent_and_keyed(cdn_bucket: CdnBucket, name: str) -> None:
    field = name.lower().replace("-", "_")
    cdn_bucket.respond("/a", "max-age=600", b"one", Vary=name)
    assert cdn_bucket.get("/a", **{field: "One"}).body == b"one"
    assert cdn_bucket.origin.asked[-1].headers[name.lower()] == "one"
    until(cdn_bucket.says("hit", "/a", **{field: "ONE"}))
    cdn_bucket.respond("/a", "max-age=600", b"two", Vary=name)
    assert cdn_bucket.get("/a", **{field: "two"}).body == b"two"
    assert cdn_bucket.get("/a", **{field: "one"}).body == b"one"


@pytest.mark.parametrize("vary", [{}, {"Vary": "Accept-Encoding"}])
def test_an_encoded_response_is_sent_only_to_those_who_accept_it(
    cdn_bucket: CdnBucket, vary: dict[str, str]
) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"zipped", Content_Encoding="gzip", **vary)
    assert cdn_bucket.get("/a", accept_encoding="deflate, gzip;q=0.5").body == b"zipped"
    until(cdn_bucket.says("hit", "/a", accept_encoding="gzip"))
    cdn_bucket.respond("/a", "max-age=600", b"plain", **vary)
    assert cdn_bucket.get("/a", accept_encoding="gzip;q=0").body == b"plain"
    sent = [asked.headers["accept-encoding"] for asked in cdn_bucket.origin.asked]
    assert sent == ["gzip", "identity"]


@pytest.mark.slow
def test_a_brain_that_starts_knows_what_stored_responses_vary_on(
    start: Callable[..., Cluster], origin: Origin
) -> None:
    cluster = start(workers=1)
    bucket = cdn_bucket_for(cluster, origin)
    german = {"accept_encoding": "gzip", "accept_language": "de"}
    varies = {"Content_Encoding": "gzip", "Vary": "Accept-Language"}
    for path in ("/a?x=1", "/a?x=2"):
        bucket.respond(path, "max-age=600", b"zipped", **varies)
        bucket.get(path, **german)
        until(bucket.says("hit", path, **german))
    asked = len(origin.asked)

    cluster.kill(0)
    cluster.restart(0)
    until(lambda: cluster.log.count("brain_started") == 2)
    for path in ("/a?x=1", "/a?x=2"):
        assert bucket.says("hit", path, **german)()
    french = {**german, "accept_language": "fr"}
    assert bucket.says("fwd=uri-miss", "/a?x=1", **french)()
    assert [each.headers.get("accept-language") for each in origin.asked[asked:]] == ["fr"]


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [
        ("", "identity"),
        ("identity", "identity"),
        ("gzip, deflate, br, zstd", "zstd, br, gzip"),
        ("BR;q=1.0,gzip; q=0.8", "br, gzip"),
        ("gzip;q=0, br;q=0.000", "identity"),
        ("x-evil, *", "identity"),
        ("gzip;q=0.001", "gzip"),
    ],
)
def test_codings_are_reduced_to_those_worth_a_variant(accepted: str, sent: str) -> None:
    assert codings(accepted) == sent


def test_a_bucket_lists_headers_that_go_to_the_origin(cdn_bucket: CdnBucket) -> None:
    scope = cdn_bucket.scope
    path = f"/v1/buckets/{cdn_bucket.bucket_id}?{scope}"
    row = cdn_bucket.cluster.call("PATCH", path, {"forwarded_headers": ["X-Own", "Cookie"]})
    assert row["forwarded_headers"] == ["cookie", "x-own"]
    for own in ("1", "2"):
        cdn_bucket.respond("/a", "max-age=600", own.encode())
        cdn_bucket.get("/a", x_own=own, cookie="of=another-bucket")
        until(cdn_bucket.says("hit", "/a", x_own=own))
    assert [cdn_bucket.get("/a", x_own=own).body for own in ("1", "2")] == [b"1", b"2"]
    # Cookies belong to the host, which all public buckets share.
    assert all("cookie" not in asked.headers for asked in cdn_bucket.origin.asked)


def test_a_bucket_cannot_list_what_is_the_cache_s_own(cdn_bucket: CdnBucket) -> None:
    for name in ["Host", "Connection", "Range", "If-None-Match", "a b", "x\r\ny", ""]:
        path = f"/v1/buckets/{cdn_bucket.bucket_id}?{cdn_bucket.scope}"
        with pytest.raises(urllib.error.HTTPError, match="400"):
            cdn_bucket.cluster.call("PATCH", path, {"forwarded_headers": [name]})


LISTED = KeyPolicy.of(["x-own", "cookie"])
OPEN = KeyPolicy.of(["*", "authorization"])
TARGET = Target("k", "k", "a=1")


def test_a_listed_header_is_sent_and_keyed_whatever_vary_says() -> None:
    one, two = (LISTED.sent({"x-own": own, "x-other": "2"}, ()) for own in ("1", "2"))
    assert one == {"x-own": "1", "accept-encoding": "identity"}
    assert LISTED.names([("vary", "x-own, x-other")]) == ()
    assert LISTED.variant(TARGET, one, ()) != LISTED.variant(TARGET, two, ())


def test_with_a_star_all_headers_are_sent_that_do_not_name_the_client() -> None:
    fields = {name.replace("_", "-"): value for name, value in POISON.items()}
    sent = OPEN.sent(fields | {"x-host": "evil"}, ())
    assert sent.keys() == {"x-own", "authorization", "referer", "accept-encoding"}
    assert OPEN.names([("vary", "X-Own, Cookie"), ("vary", "authorization")]) == ("x-own",)
    others = OPEN.sent(fields | {"x-own": "2"}, ())
    assert OPEN.variant(TARGET, sent, ()) == OPEN.variant(TARGET, others, ())
    assert OPEN.variant(TARGET, sent, ("x-own",)) != OPEN.variant(TARGET, others, ("x-own",))


def test_blanks_around_commas_are_no_difference_in_what_vary_names() -> None:
    def variant(value: str) -> str:
        return OPEN.variant(TARGET, OPEN.sent({"x-own": value}, ()), ("x-own",))

    assert variant("1,2") == variant("1, 2") == variant("1 ,\t2")
    assert len({variant(text) for text in ("1,2", "1 2", '"1,2"', '"1, 2"', "2,1")}) == 5


def test_a_url_is_named_by_query_and_spelling() -> None:
    policy = KeyPolicy.of(())
    names = {
        policy.variant(Target("k", "k", query, spelling), {}, ())
        for query in ("", "a", "a" * 2000, "b" * 2000)
        for spelling in ("", "x")
    }
    assert len(names) == 8
    assert max(map(len, names)) < 600
    # A client cannot ask for the name of a long query.
    digest = policy.variant(Target("k", "k", "a" * 2000), {}, ()).partition("#")[0]
    assert policy.variant(Target("k", "k", digest), {}, ()) not in names


@pytest.mark.parametrize("other", ["mobile\xa0", "mobile\x85", '{"a":1 , "b":2}', "Mobile"])
def test_what_an_origin_can_tell_apart_has_two_keys(other: str) -> None:
    for usual in ("mobile", '{"a":1,"b":2}'):
        sent = [LISTED.sent({"x-own": own}, ()) for own in (usual, other)]
        assert LISTED.variant(TARGET, sent[0], ()) != LISTED.variant(TARGET, sent[1], ())
