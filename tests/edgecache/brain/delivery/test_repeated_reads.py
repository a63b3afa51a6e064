"""Reads of an object that is in memory follow each change immediately."""

import os
from collections.abc import Callable
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest

from edgecache.brain.db.coherence import CHANNEL
from tests.edgecache.brain.delivery.shelf import BODY, Shelf, direct_shelf
from tests.edgecache.brain.s3.raw import Answer, Signer, md5, send
from tests.edgecache.cluster import Cluster, Keys, until

OTHER = os.urandom(5001)


@pytest.fixture
def shelf(cluster: Cluster, keys: Keys) -> Shelf:
    """Return a bucket with one cached object, which the brain serves from memory."""
    return direct_shelf(cluster, keys)


def test_a_read_follows_a_change_of_the_object_or_its_bucket(shelf: Shelf) -> None:
    for body in (OTHER, BODY, OTHER):
        shelf.put("k", body)
        assert {shelf.get().body for _ in range(5)} == {body}
        assert {shelf.get_signed().body for _ in range(5)} == {body}
        shelf.warm()
    # The same bytes with another description.
    shelf.put("k", OTHER, **{"content-type": "text/x-new"})
    assert {shelf.get().headers["content-type"] for _ in range(5)} == {"text/x-new"}
    shelf.warm()
    shelf.change(is_public=False)
    assert {shelf.get().code for _ in range(5)} == {"AccessDenied"}
    assert {shelf.get_signed().body for _ in range(5)} == {OTHER}
    shelf.change(is_public=True)
    shelf.warm()
    shelf.change(verifies_reads=True)
    assert {shelf.get().body for _ in range(5)} == {OTHER}
    shelf.change(verifies_reads=False)
    shelf.warm()
    shelf.change(allows_redirect=True)
    assert {shelf.get().status for _ in range(5)} == {307}
    shelf.change(allows_redirect=False)
    shelf.warm()
    shelf.signer.send("DELETE", "/shelf/k")
    assert {shelf.get().code for _ in range(5)} == {"NoSuchKey"}
    assert {shelf.get_signed().code for _ in range(5)} == {"NoSuchKey"}


@pytest.mark.parametrize("scope", [{"keys": ["shelf/k"]}, {"prefix": "shelf/"}])
def test_a_read_after_a_purge_goes_to_the_origin_again(shelf: Shelf, scope: dict[str, Any]) -> None:
    tenant = {
        "organization_id": shelf.keys.organization_id,
        "environment_pk": shelf.keys.environment_pk,
    }
    purged = shelf.cluster.call("POST", "/v1/purge", tenant | scope)
    assert purged["objects_purged"] == 1
    assert shelf.get().body == BODY


def _changed(shelf: Shelf, change: LiteralString, *params: Any, said: str) -> None:
    """Change the brain's tables as another brain does, and announce it."""
    with psycopg.connect(shelf.cluster.database_url) as connection:
        connection.execute(change, params)
        payload = f'["{UUID(int=7).hex}",1,0,[{said}]]'
        connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])


def test_a_name_that_becomes_a_bucket_s_host_is_one_immediately(shelf: Shelf) -> None:
    host = f"static-{shelf.row['id']}.example.com"
    shelf.headers["host"] = host
    # It is neither the object API's nor a bucket's.
    assert shelf.get().code == "InvalidRequest"
    _changed(
        shelf,
        "INSERT INTO brain_host (host, bucket_id, token, proved_at, checked_at)"
        " VALUES (%s, %s, %s, now(), now())",
        host,
        shelf.row["id"],
        "t" * 43,
        said='["hosts"]',
    )
    # There the path is the key alone.
    until(lambda: shelf.get().status == 404)
    assert {shelf.get().status for _ in range(5)} == {404}


DECIDED_AGAIN: list[tuple[dict[str, str], Callable[[Answer], bool]]] = [
    ({"range": "bytes=5-9"}, lambda said: (said.status, said.body) == (206, BODY[5:10])),
    ({"range": "bytes=99999-"}, lambda said: said.code == "InvalidRange"),
    ({"if-none-match": f'"{md5(BODY).hex()}"'}, lambda said: said.status == 304),
    ({"if-match": '"x"'}, lambda said: said.code == "PreconditionFailed"),
    (
        {"if-unmodified-since": "Thu, 01 Jan 2015 00:00:00 GMT"},
        lambda said: said.status == 412,
    ),
    ({"x-amz-expected-bucket-owner": "1"}, lambda said: said.code == "AccessDenied"),
    ({"x-amz-acl": "public-read"}, lambda said: said.status == 501),
    ({"x-zonal-redirect": "1"}, lambda said: said.status == 307),
]


def test_a_request_with_more_headers_gets_its_own_answer(shelf: Shelf) -> None:
    for signs in [True, False]:
        for headers, is_right in DECIDED_AGAIN:
            answer = shelf.get_signed(**headers) if signs else shelf.get(**headers)
            assert is_right(answer), answer


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"authorization": "AWS4-HMAC-SHA256 nonsense"}, "AuthorizationHeaderMalformed"),
        ({"authorization": "AWS who:what"}, "InvalidRequest"),
    ],
)
def test_an_object_in_memory_is_not_sent_before_authentication(
    shelf: Shelf, headers: dict[str, str], code: str
) -> None:
    assert shelf.get(**headers).code == code


def test_only_an_authenticated_owner_gets_a_private_object_in_memory(shelf: Shelf) -> None:
    shelf.change(is_public=False)
    assert {shelf.get_signed().body for _ in range(20)} == {BODY}
    stranger = Signer(shelf.cluster.tenant(), shelf.cluster.url)
    assert stranger.send("GET", "/shelf/k").code == "NoSuchBucket"
    assert shelf.get().code == "AccessDenied"
    assert send(shelf.cluster.url, "GET", "/shelf/k").code == "AccessDenied"
    forged = shelf.signer.sign("GET", "/shelf/k")
    forged["authorization"] = forged["authorization"][:-4] + "0000"
    assert send(shelf.cluster.url, "GET", "/shelf/k", forged).code == "SignatureDoesNotMatch"


@pytest.mark.parametrize("headers", [{}, {"x-forwarded-for": "203.0.113.9", "user-agent": "a"}])
def test_an_object_in_memory_has_its_headers_and_a_line_in_the_log(
    shelf: Shelf, headers: dict[str, str]
) -> None:
    answers = [shelf.get(**headers) for _ in range(20)]
    for answer in answers:
        assert (answer.status, answer.body) == (200, BODY)
        assert answer.headers["etag"] == f'"{md5(BODY).hex()}"'
        assert answer.headers["content-type"] == "text/x-k"
        assert answer.headers["content-length"] == str(len(BODY))
    assert len({answer.headers["x-amz-request-id"] for answer in answers}) == 20
    # A client cannot choose the address that is logged.
    request_id = answers[-1].headers["x-amz-request-id"]
    until(lambda: f'"request_id":"{request_id}"' in shelf.cluster.log)
    (line,) = (line for line in shelf.cluster.log.splitlines() if request_id in line)
    assert '"client":"127.0.0.1"' in line
    assert f'"sent_bytes":{len(BODY)}' in line


def test_an_object_larger_than_a_packet_arrives_whole(shelf: Shelf) -> None:
    large = os.urandom(100_000)
    shelf.put("large", large)
    shelf.warm("large")
    assert {shelf.get("large").body for _ in range(20)} == {large}


def test_a_query_that_changes_the_response_gets_its_own_answer(shelf: Shelf) -> None:
    for query, anonymous, signed in [
        ("?partNumber=1", 206, 206),
        ("?versionId=x", 400, 400),
        ("?response-expires=x", 400, 200),
        ("?acl", 403, 200),
    ]:
        assert {shelf.get(f"k{query}").status for _ in range(3)} == {anonymous}
        assert {shelf.get_signed(f"k{query}").status for _ in range(3)} == {signed}


def test_a_head_request_has_no_body(shelf: Shelf) -> None:
    head = send(shelf.cluster.url, "HEAD", shelf.path("k"))
    assert (head.status, head.headers["content-length"]) == (200, str(len(BODY)))
    assert head.body == b""


def test_responses_with_and_without_checksums_are_kept_apart(shelf: Shelf) -> None:
    shelf.put("summed", BODY)
    more = {"x-amz-checksum-mode": "ENABLED"}
    for _ in range(10):
        assert "x-amz-checksum-type" in shelf.get("summed", **more).headers
        assert "x-amz-checksum-type" not in shelf.get("summed").headers
        assert "x-amz-checksum-type" in shelf.get_signed("summed", **more).headers


def test_answers_without_bytes_are_counted_as_hits(shelf: Shelf) -> None:
    shelf.put("empty", b"")
    before = shelf.cluster.call("GET", "/v1/metrics")
    etag = shelf.get().headers["etag"]
    assert shelf.get(if_none_match=etag).status == 304
    assert send(shelf.cluster.url, "HEAD", shelf.path("k")).status == 200
    assert send(shelf.cluster.url, "HEAD", shelf.path("k"), {"if-none-match": etag}).status == 304
    assert (shelf.get("empty").status, shelf.get("empty").body) == (200, b"")
    assert shelf.get(if_match='"x"').status == 412

    after = shelf.cluster.call("GET", "/v1/metrics")
    assert after["total_hits"] - before["total_hits"] == 7
    assert after["total_misses"] == before["total_misses"]
