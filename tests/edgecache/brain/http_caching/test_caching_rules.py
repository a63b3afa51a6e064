"""What may be stored, for how long, and how it may be used: RFC 9111, 5861 and 9213."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgecache.brain.http_caching import caching_rules
from edgecache.brain.http_caching.caching_rules import Reuse, StoredResponse

NOW = 1_795_000_000.0
Pairs = list[tuple[str, str]]


def date(seconds: float) -> str:
    return formatdate(NOW + seconds, usegmt=True)


def judged(*headers: tuple[str, str], took: float = 0.0) -> StoredResponse:
    kept = caching_rules.judge(list(headers), asked_at=NOW - took, answered_at=NOW)
    assert kept is not None
    return kept


def control(text: str) -> tuple[str, str]:
    return ("cache-control", text)


@pytest.mark.parametrize(
    "headers",
    [
        [control("no-store")],
        [control("private")],
        [control('private="set-cookie"')],
        [control("max-age=60, NO-STORE")],
        [("vary", "*"), control("max-age=60")],
        [("vary", "accept, *"), control("max-age=60")],
        [("set-cookie", "session=1")],
        [("set-cookie", "session=1"), control("max-age=60")],
        [control("max-age=60"), ("cdn-cache-control", "no-store")],
    ],
)
def test_a_shared_cache_must_not_store_these(headers: Pairs) -> None:
    assert caching_rules.judge(headers, asked_at=NOW, answered_at=NOW) is None


@pytest.mark.parametrize(
    ("said", "within_s", "kept"),
    [
        ([], 60, "private, max-age=0"),
        ([control("public, max-age=600, s-maxage=900, immutable")], 60, "private, max-age=60"),
        ([control("max-age=30, stale-while-revalidate=900")], 60, "private, max-age=30"),
        ([control("max-age=x")], 60, "private, max-age=0"),
        ([control("max-age=30"), control("max-age=40")], 60, "private, max-age=0"),
        ([control("max-age=600")], -1, "private, max-age=0"),
        ([control("no-store"), ("pragma", "x")], 60, "private, max-age=0, no-store"),
        (
            [control("No-Cache, no-transform, must-revalidate"), ("expires", date(900))],
            60,
            "private, max-age=0, no-cache, must-revalidate, no-transform",
        ),
        (
            [("cdn-cache-control", "max-age=9"), ("x-y-cache-control", "public")],
            9,
            "private, max-age=0",
        ),
    ],
)
def test_only_one_client_may_keep_a_response(said: Pairs, within_s: int, kept: str) -> None:
    headers = [("etag", "v"), *said]
    assert caching_rules.for_one_client(headers, within_s=within_s) == [
        ("etag", "v"),
        control(kept),
    ]


@pytest.mark.parametrize(
    ("headers", "lifetime_s"),
    [
        ([control("max-age=60")], 60),
        ([control("max-age=60, s-maxage=600")], 600),
        ([control("s-maxage=0, max-age=60")], 0),
        ([control('max-age="60"')], 60),
        ([control("max-age=60"), ("expires", date(7200))], 60),
        ([("date", date(0)), ("expires", date(7200))], 7200),
        ([("date", date(0)), ("expires", date(-5))], 0),
        ([("expires", "0")], 0),
        ([("date", date(0)), ("expires", "Thursday, 18-Aug-50 02:01:18 GMT")], 749_400_878),
        ([("date", date(0)), ("expires", "Thu Aug  8 02:01:18 2050")], 748_536_878),
        ([("expires", "Thu, 18 Aug 2050 02:01:18 UTC")], 0),
        ([("expires", "Thu, 18 Aug 2050 2:01:18 GMT")], 0),
        ([("expires", "Thu, 18-Aug-2050 02:01:18 GMT")], 0),
        ([control("no-cache"), ("cdn-cache-control", 'max-age="600"')], 0),
        ([control("max-age=x"), ("expires", date(7200))], 0),
        ([control("max-age=-1")], 0),
        ([control("max-age=60, max-age=600")], 0),
        ([control("max-age=99999999999999999999")], 0),
        ([control("max-age=99999999999")], 2**31),
        ([control("no-cache, max-age=60")], 0),
        ([("date", date(0)), ("last-modified", date(-1000))], 100),
        ([("date", date(0)), ("last-modified", date(-100 * 86400))], 86400),
        ([], 0),
        ([control("max-age=60"), ("cdn-cache-control", "max-age=600")], 600),
        ([control("no-store"), ("cdn-cache-control", "max-age=600")], 600),
        ([control("max-age=60"), ("cdn-cache-control", "MAX AGE; nonsense")], 60),
        ([control("max-age=60"), ("cdn-cache-control", "")], 60),
        ([("expires", date(7200)), ("cdn-cache-control", "public")], 0),
        ([control("max-age=60, public"), ("set-cookie", "a=b")], 60),
        ([control("s-maxage=60"), ("set-cookie", "a=b")], 60),
    ],
)
def test_a_response_is_fresh_for_this_long(headers: Pairs, lifetime_s: int) -> None:
    assert judged(*headers).lifetime_s == lifetime_s


@pytest.mark.parametrize(
    ("headers", "took", "age_s"),
    [
        ([], 0, 0),
        ([("age", "30")], 0, 30),
        ([("age", "30")], 5, 35),
        ([("date", date(-40))], 0, 40),
        ([("date", date(40))], 0, 0),
        ([("age", "10"), ("date", date(-40))], 0, 40),
        ([("age", "nonsense")], 0, 0),
        ([("date", "nonsense")], 3, 3),
    ],
)
def test_a_response_has_this_age_when_it_is_received(
    headers: Pairs, took: float, age_s: int
) -> None:
    assert judged(*headers, took=took).age_s == age_s


@pytest.mark.parametrize(
    ("text", "after", "use"),
    [
        ("max-age=60", 59, Reuse.FRESH),
        ("max-age=60", 60, Reuse.REVALIDATE),
        ("max-age=60, stale-while-revalidate=30", 60, Reuse.STALE_WHILE_REVALIDATE),
        ("max-age=60, stale-while-revalidate=30", 89, Reuse.STALE_WHILE_REVALIDATE),
        ("max-age=60, stale-while-revalidate=30", 90, Reuse.REVALIDATE),
        ("max-age=60, stale-while-revalidate=30, must-revalidate", 61, Reuse.REVALIDATE),
        ("no-cache, stale-while-revalidate=30", 1, Reuse.REVALIDATE),
    ],
)
def test_a_stored_response_may_be_used_like_this(text: str, after: float, use: Reuse) -> None:
    assert caching_rules.use(judged(control(text)), now=NOW + after) is use


@pytest.mark.parametrize(
    ("text", "after", "serves"),
    [
        ("max-age=60", 61, False),
        ("max-age=60, stale-if-error=300", 61, True),
        ("max-age=60, stale-if-error=300", 360, False),
        ("max-age=60, stale-if-error=300, must-revalidate", 61, False),
        ("max-age=60, stale-if-error=300, proxy-revalidate", 61, False),
    ],
)
def test_a_stale_response_may_be_used_when_the_origin_fails(
    text: str, after: float, serves: bool
) -> None:
    assert caching_rules.serves_on_error(judged(control(text)), now=NOW + after) is serves


def test_a_304_updates_its_headers_and_keeps_the_others() -> None:
    kept = judged(control("max-age=60"), ("etag", '"a"'), ("content-type", "text/css"))
    said = [control("max-age=600"), ("date", date(100))]
    renewed = caching_rules.renewed(kept, said, asked_at=NOW + 100, answered_at=NOW + 100)
    assert renewed is not None
    assert (renewed.lifetime_s, renewed.etag) == (600, '"a"')
    assert ("content-type", "text/css") in renewed.headers
    assert caching_rules.age_s(renewed, now=NOW + 100) == 0
    assert caching_rules.renewed(kept, [control("no-store")], asked_at=NOW, answered_at=NOW) is None


def test_a_revalidation_sends_both_validators() -> None:
    kept = judged(("etag", 'W/"a"'), ("last-modified", date(-5)))
    assert caching_rules.conditions(kept) == [
        ("if-none-match", 'W/"a"'),
        ("if-modified-since", date(-5)),
    ]


def test_hop_by_hop_headers_are_removed() -> None:
    kept = judged(
        ("connection", "x-secret"),
        ("x-secret", "1"),
        ("keep-alive", "timeout=5"),
        ("set-cookie", "a=b"),
        control("public"),
        ("x-kept", "2"),
    )
    assert dict(kept.headers) == {"cache-control": "public", "x-kept": "2", "date": date(0)}


@pytest.mark.parametrize(
    ("status", "headers", "lifetime_s"),
    [
        (204, [control("max-age=60")], 60),
        (404, [("date", date(0)), ("last-modified", date(-1000))], 100),
        (302, [("date", date(0)), ("last-modified", date(-1000))], None),
        (302, [("date", date(0)), ("expires", date(60))], 60),
        (302, [control("public"), ("date", date(0)), ("last-modified", date(-1000))], 100),
        (503, [], None),
        (503, [control("max-age=5")], 5),
        (599, [control("max-age=5")], 5),
        (599, [control("max-age=5, must-understand")], None),
        (599, [control("max-age=5, no-store, must-understand")], None),
        (200, [control("max-age=5, no-store, must-understand")], 5),
        (206, [control("max-age=5")], None),
        (304, [control("max-age=5")], None),
        (200, [control("max-age=60"), ("x-long", "x" * 20_000)], None),
    ],
)
def test_a_status_decides_what_is_stored(
    status: int, headers: Pairs, lifetime_s: int | None
) -> None:
    kept = caching_rules.judge(headers, asked_at=NOW, answered_at=NOW, status=status)
    assert (None if kept is None else kept.lifetime_s) == lifetime_s


@pytest.mark.parametrize(
    ("text", "is_stored"),
    [
        ("max-age=60", False),
        ("max-age=60, public", True),
        ("s-maxage=60", True),
        ("max-age=60, must-revalidate", True),
        ("max-age=60, proxy-revalidate", False),
    ],
)
def test_a_response_to_credentials_is_stored_only_with_permission(
    text: str, is_stored: bool
) -> None:
    targeted = [control("private"), ("cdn-cache-control", text)]
    for headers in ([control(text)], targeted):
        kept = caching_rules.judge(headers, asked_at=NOW, answered_at=NOW, has_credentials=True)
        assert (kept is not None) is is_stored


def test_a_stored_response_survives_json() -> None:
    kept = judged(control("max-age=60"), ("vary", "accept"), ("etag", '"a"'))
    assert StoredResponse.from_json(kept.as_json()) == kept


@pytest.mark.parametrize(
    ("headers", "keeps"),
    [
        ([], True),
        ([control("max-age=60")], True),
        ([control("max-age=0, s-maxage=60")], True),
        ([control("max-age=0")], False),
        ([("expires", "0")], False),
        ([control("no-cache")], False),
        ([control("No-Store")], False),
        ([control("private")], False),
        ([control("max-age=60"), ("cdn-cache-control", "no-store")], False),
        ([control("no-store"), ("cdn-cache-control", "max-age=60")], True),
    ],
)
def test_a_404_may_be_cached_for_a_moment(headers: Pairs, keeps: bool) -> None:
    assert caching_rules.allows_negative_caching(headers) is keeps


ASKED = "http://origin.example/folder/a?x=1"


@pytest.mark.parametrize(
    ("status", "headers", "ended"),
    [
        (200, [], [ASKED]),
        (204, [], [ASKED]),
        (303, [("location", "/b")], [ASKED, "http://origin.example/b"]),
        (201, [("location", "b?y#top")], [ASKED, "http://origin.example/folder/b?y"]),
        (200, [("content-location", "HTTP://ORIGIN.example:80/b")], 2),
        (201, [("location", ASKED), ("content-location", "?x=1")], [ASKED]),
        (201, [("location", "https://origin.example/b")], [ASKED]),
        (201, [("location", "http://origin.example:8080/b")], [ASKED]),
        (201, [("location", "//other.example/b")], [ASKED]),
        (201, [("location", "http://[/b"), ("content-location", "")], [ASKED]),
        (201, [("location", "http://origin.example:x/b")], [ASKED]),
        (400, [("location", "/b")], []),
        (500, [], []),
    ],
)
def test_an_unsafe_request_invalidates_these(
    status: int, headers: Pairs, ended: list[str] | int
) -> None:
    urls = caching_rules.invalidated(ASKED, status, headers)
    assert len(urls) == ended if isinstance(ended, int) else list(urls) == ended


TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
NAMES = st.sampled_from(
    ["cache-control", "cdn-cache-control", "expires", "date", "age", "vary", "last-modified", "x"]
)


@given(st.lists(st.tuples(NAMES, TEXT), max_size=8), st.floats(0, 1e6))
def test_the_rules_hold_for_any_headers(headers: Pairs, later: float) -> None:
    kept = caching_rules.judge(headers, asked_at=NOW, answered_at=NOW)
    if kept is None:
        return
    assert 0 <= kept.lifetime_s <= caching_rules.MAX_DELTA_S
    assert caching_rules.age_s(kept, now=NOW + later) >= kept.age_s >= 0
    is_fresh = caching_rules.use(kept, now=NOW + later) is Reuse.FRESH
    assert is_fresh == (caching_rules.age_s(kept, now=NOW + later) < kept.lifetime_s)
    if kept.must_revalidate:
        assert caching_rules.use(kept, now=NOW + later) is not Reuse.STALE_WHILE_REVALIDATE
        assert not caching_rules.serves_on_error(kept, now=NOW + later)


@given(st.sampled_from(["no-store", "private"]), TEXT, TEXT)
def test_a_forbidden_response_is_never_stored_whatever_else_the_header_has(
    word: str, before: str, after: str
) -> None:
    # A quoted string may contain the directive; commas alone may not hide it.
    text = f"{before.replace(chr(34), '')},{word},{after.replace(chr(34), '')}"
    assert caching_rules.judge([control(text)], asked_at=NOW, answered_at=NOW) is None


@given(st.integers(100, 599), st.lists(st.tuples(st.just("location"), st.text(max_size=60))))
def test_a_response_invalidates_urls_of_its_own_origin_only(status: int, headers: Pairs) -> None:
    urls = caching_rules.invalidated(ASKED, status, headers)
    assert (ASKED in urls) == (200 <= status < 400) == bool(urls)
    assert {caching_rules.site(url) for url in urls} <= {("http", "origin.example", 80)}
