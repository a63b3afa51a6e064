"""Lines of access logs: in AWS's format, whatever a client sends, and without its secrets."""

import re
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import quote

import pytest

from edgecache.brain.core.values import BucketInfo, EnvironmentKey
from edgecache.brain.s3.access_log_lines import line_of, line_of_missing
from edgecache.brain.s3.listing_query import owner_id
from edgecache.brain.s3.request_log import LogEntry
from edgecache.http.exchange import Exchange
from edgecache.http.headers import Headers
from edgecache.http.scope import HttpScope

NOW = datetime(2026, 2, 6, 0, 0, 38, tzinfo=UTC)
TENANT = EnvironmentKey(1, 11)
BUCKET = BucketInfo(
    id=1,
    tenant=TENANT,
    name="docs",
    public_name="abc",
    origin_id=None,
    origin=None,
    origin_prefix="",
    created_at=NOW,
)
# AWS's pattern for Athena, where nothing may follow.
AWS = re.compile(
    r'([^ ]*) ([^ ]*) \[(.*?)\] ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ("[^"]*"|-) (-|[0-9]*)'
    r' ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ("[^"]*"|-) ([^ ]*)'
    r" ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*)\n"
)


def fields(
    entry: LogEntry,
    *,
    method: str = "GET",
    path: str = "/docs/a",
    query: str = "",
    status: int = 200,
    **headers: str,
) -> list[str]:
    """Return the fields of a request's line."""
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    scope = HttpScope(method, path, query, "1.1", Headers(named), "192.0.2.3:4711")
    exchange = Exchange(scope, cast(Any, None), keeps_alive=True)
    exchange.status, exchange.sent_bytes = status, 7
    line = line_of(BUCKET, entry, scope, exchange, now=NOW)
    found = AWS.fullmatch(line.decode("ascii"))
    assert found is not None, line
    return [*found.groups()]


def test_a_line_has_the_fields_of_aws() -> None:
    entry = LogEntry("3E57", operation="GetObject", bucket="docs", key="a", access_key="ZKEY")
    found = fields(
        entry,
        host="s3.example.com",
        user_agent="curl/8 (x)",
        referer="https://a/b",
        authorization="AWS4-HMAC-SHA256 …",
    )
    assert found[2] in {"06/Feb/2026:00:00:38 +0000", "06/Feb/2026:00:00:37 +0000"}
    assert found[13].isdigit()
    found[2] = found[13] = "?"
    assert found == [
        owner_id(TENANT),
        "docs",
        "?",
        "192.0.2.3",
        "ZKEY",
        "3E57",
        "REST.GET.OBJECT",
        "a",
        '"GET /docs/a HTTP/1.1"',
        "200",
        "-",
        "7",
        "-",
        "?",
        "-",
        '"https://a/b"',
        '"curl/8 (x)"',
        "-",
        "-",
        "SigV4",
        "-",
        "AuthHeader",
        "s3.example.com",
        "-",
        "-",
        "-",
    ]


@pytest.mark.parametrize(
    "text",
    ['a" 200 - "', "a\nb", "a\r\nb", "a\x00\x1b[31mb", "a\\", '\\"', "é\xad\x85", "\x7f", " "],
)
def test_no_text_of_a_client_ends_a_field_or_a_line(text: str) -> None:
    entry = LogEntry("", operation="CDN", key=text, error=text)
    found = fields(
        entry, method=text, path="/" + text, query=text, host=text, user_agent=text, referer=text
    )
    assert found[6].startswith("WEBSITE.")
    assert not any(re.search(r"[^ -~]|\\", each) for each in found)


def test_a_key_beyond_unicode_s_letters_is_written_in_ascii() -> None:
    assert fields(LogEntry("", key='ä b/☃"%'))[7] == "%C3%A4%20b/%E2%98%83%22%25"


def test_long_texts_are_cut() -> None:
    long = "x" * 10_000
    line = fields(LogEntry("", key="k"), path="/" + long, user_agent=long, referer=long, host=long)
    assert sum(map(len, line)) < 9000


@pytest.mark.parametrize(
    "name",
    [
        "X-Amz-Signature",
        "x-amz-signature",
        "X-Amz-Security-Token",
        "Signature",
        "X%2dAmz%2DSignature",
        "sig",
        "zonal-signature",
        "access_token",
        "password",
        "Policy",
    ],
)
def test_a_secret_of_the_query_is_masked(name: str) -> None:
    query = f"a=b&{name}=5ecre7&list-type=2"
    entry = LogEntry("", operation="GetObject", access_key="Z")
    for found in (
        fields(entry, query=query),
        fields(entry, query=f"{name}=5ecre7"),
        fields(entry, query=f"{name}=5ecre7#a=b"),
        fields(entry, referer=f"https://files.example.com/p?{query}"),
        fields(entry, user_agent=f"curl https://files.example.com/p?{query}"),
    ):
        line = " ".join(found)
        assert "5ecre7" not in line
        assert f"{name}=***" in line
        assert found[8].endswith(' HTTP/1.1"')


def test_a_password_in_the_address_of_a_page_is_masked() -> None:
    line = " ".join(fields(LogEntry(""), referer="https://me:5ecre7@example.com/"))
    assert "5ecre7" not in line


def test_a_form_is_signed_neither_in_a_header_nor_in_the_query() -> None:
    entry = LogEntry("", operation="PostObject", key="a", access_key="Z", form_signature="SigV4")
    found = fields(entry, method="POST", path="/docs")
    assert (found[6], found[19], found[21]) == ("REST.POST.OBJECT", "SigV4", "-")


@pytest.mark.parametrize("encodings", [0, 1, 2])
def test_the_signature_of_a_url_within_a_url_is_masked(encodings: int) -> None:
    link = "https://files.example.com/a?zonal-signature=5ecre7&zonal-expires=1"
    for _ in range(encodings):
        link = quote(link, safe="")
    for found in (
        fields(LogEntry(""), query=f"file={link}"),
        fields(LogEntry(""), referer=f"https://files.example.com/viewer.html?file={link}"),
        # A client that encodes the question mark asks for another key.
        fields(LogEntry("", key="a?zonal-signature=5ecre7"), path=f"/{link}"),
    ):
        assert "5ecre7" not in " ".join(found)


def test_the_line_of_what_is_missing_has_the_same_format() -> None:
    found = AWS.fullmatch(line_of_missing(BUCKET, 1234, NOW).decode())
    assert found is not None
    assert found.groups()[6:8] == ("LOG.MISSING.LINES", "1234")
