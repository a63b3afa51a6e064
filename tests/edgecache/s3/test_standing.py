"""Decisions that stand: given again while everything is the same, and not a moment longer."""

import hashlib
import os
import re
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest

from edgecache.brain.delivery import nginx_offload
from edgecache.brain.directory.coherence import CHANNEL
from tests.edgecache.s3.cluster import Cluster, Keys, until
from tests.edgecache.s3.raw import Answer, Signer, md5, send

BODY = os.urandom(5000)
OTHER = os.urandom(5001)
CLIENT = "203.0.113.9"


@dataclass
class Shelf:
    """A public bucket of a tenant, as nginx asks for what is in it."""

    cluster: Cluster
    keys: Keys
    row: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def signer(self) -> Signer:
        """Give the owner's signatures."""
        return Signer(self.keys, self.cluster.url)

    @property
    def repeated(self) -> int:
        """Give how often the brain gave an earlier decision again."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.cluster.internal_port}/metrics",
            headers={"Authorization": f"Bearer {self.cluster.secret}"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - http, as above
            found = re.search(
                r"^zonal_cache_repeated_total (\d+)", answer.read().decode(), re.MULTILINE
            )
        assert found is not None
        return int(found[1])

    def path(self, key: str) -> str:
        """Give where anybody finds an object."""
        return f"/{self.row['public_name']}/{key}"

    def put(self, key: str, body: bytes, **headers: str) -> None:
        """Write an object."""
        assert self.signer.send("PUT", f"/shelf/{key}", body, headers).status == 200

    def ask(self, key: str = "k", **headers: str) -> Answer:
        """Ask as nginx does, with more headers."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return send(self.cluster.url, "GET", self.path(key), self.headers | more)

    def told(self, key: str = "k") -> str:
        """Give which file nginx is told to send; for a sample the brain's bytes tell as much."""
        answer = self.ask(key)
        assert answer.status == 200, answer
        return _file(answer)

    def rest(self, key: str = "k") -> None:
        """Ask until a decision stands."""

        def is_repeated() -> bool:
            before = self.repeated
            self.ask(key)
            return self.repeated > before

        until(is_repeated)

    def change(self, **switches: bool) -> None:
        """Change the bucket."""
        self.cluster.call("PATCH", f"/v1/buckets/{self.row['id']}?{self.keys.scope}", switches)


def _file(answer: Answer) -> str:
    """Give the hash of what a client will get."""
    said = answer.headers.get("x-accel-redirect", "")
    return said.rpartition("/")[2] if said else hashlib.sha256(answer.body).hexdigest()


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@pytest.fixture
def direct(cluster: Cluster, keys: Keys) -> Shelf:
    """Give a bucket with one object, which the brain itself answers with again and again."""
    row = cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "shelf", "is_public": True})
    made = Shelf(cluster, keys, row)
    made.put("k", BODY, **{"content-type": "text/x-k"})
    made.rest()
    return made


@pytest.fixture
def shelf(cluster: Cluster, keys: Keys) -> Shelf:
    """Give a bucket with one object, whose decision stands."""
    row = cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "shelf", "is_public": True})
    names = (nginx_offload.upstream_name(UUID(node["node_id"])) for node in cluster.nodes)
    headers = {
        "x-zonal-gateway": nginx_offload.token_of(cluster.secret),
        "x-zonal-client": CLIENT,
        "x-zonal-stores": " ".join(names),
    }
    made = Shelf(cluster, keys, row, headers)
    made.put("k", BODY, **{"content-type": "text/x-k"})
    made.rest()
    return made


def test_it_says_what_the_decision_said(shelf: Shelf) -> None:
    shelf.put("other", BODY, **{"content-type": "text/x-k"})
    answers: list[Answer] = []

    def are_alike() -> bool:
        # One is decided anew, one stands; neither is a sample that the brain moves itself.
        answers[:] = [shelf.ask("other", range="bytes=0-"), shelf.ask("k")]
        return all("x-accel-redirect" in answer.headers for answer in answers)

    until(are_alike)
    changing = {"x-accel-redirect", "x-amz-request-id", "last-modified", "x-zonal-range"}
    anew, again = (
        {name: value for name, value in answer.headers.items() if name not in changing}
        for answer in answers
    )
    assert again.pop("content-length") == anew.pop("content-length") == "0"
    assert again == anew | {"date": again["date"]}
    assert set(again) >= {"etag", "content-type", "accept-ranges", "date"}
    assert answers[1].headers["x-accel-redirect"].endswith(_hash(BODY))
    ids = {shelf.ask().headers["x-amz-request-id"] for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch("[0-9A-F]{16}", each) for each in ids)


@pytest.mark.parametrize("way", ["shelf", "direct"])
def test_it_ends_with_what_it_followed_from(way: str, request: pytest.FixtureRequest) -> None:
    shelf: Shelf = request.getfixturevalue(way)
    for body in (OTHER, BODY, OTHER):
        shelf.put("k", body)
        assert {shelf.told() for _ in range(5)} == {_hash(body)}
        shelf.rest()
    # The same bytes, described otherwise.
    shelf.put("k", OTHER, **{"content-type": "text/x-new"})
    assert {shelf.ask().headers["content-type"] for _ in range(5)} == {"text/x-new"}
    shelf.rest()
    shelf.change(is_public=False)
    assert {shelf.ask().code for _ in range(5)} == {"AccessDenied"}
    shelf.change(is_public=True)
    shelf.rest()
    shelf.change(verifies_reads=True)
    assert {shelf.ask().body for _ in range(5)} == {OTHER}
    shelf.change(verifies_reads=False)
    shelf.rest()
    shelf.change(allows_redirect=True)
    assert {shelf.ask().status for _ in range(5)} == {307}
    shelf.change(allows_redirect=False)
    shelf.rest()
    shelf.signer.send("DELETE", "/shelf/k")
    assert {shelf.ask().code for _ in range(5)} == {"NoSuchKey"}


def _changed(shelf: Shelf, change: LiteralString, *params: Any, said: str) -> None:
    """Change the brain's tables as another brain does, and announce it."""
    with psycopg.connect(shelf.cluster.database_url) as connection:
        connection.execute(change, params)
        payload = f'["{UUID(int=7).hex}",1,0,[{said}]]'
        connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])


def test_it_ends_with_what_another_brain_announces(shelf: Shelf) -> None:
    node_ids = [UUID(node["node_id"]) for node in shelf.cluster.nodes]
    until(lambda: shelf.ask().headers.get("x-accel-redirect", "").startswith("/.zonal-store/"))
    _changed(
        shelf,
        "DELETE FROM brain_location WHERE blob_id = %s AND node_id = ANY(%s)",
        hashlib.sha256(BODY).digest(),
        node_ids,
        said=f'["blob","{_hash(BODY)}"]',
    )
    until(lambda: shelf.ask().body == BODY)
    assert "x-accel-redirect" not in shelf.ask().headers


def test_a_name_that_becomes_a_bucket_s_host_is_one_at_once(shelf: Shelf) -> None:
    host = f"static-{shelf.row['id']}.example.com"
    shelf.headers["host"] = host
    shelf.rest()
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
    until(lambda: shelf.ask().status == 404)
    assert {shelf.ask().status for _ in range(5)} == {404}


@pytest.mark.parametrize(
    ("headers", "is_right"),
    [
        (
            {"range": "bytes=5-9"},
            lambda said: "x-zonal-range" in said.headers or said.status == 206,
        ),
        ({"Range": "bytes=99999-"}, lambda said: said.code == "InvalidRange"),
        ({"if-none-match": f'"{md5(BODY).hex()}"'}, lambda said: said.status == 304),
        ({"If-Match": '"x"'}, lambda said: said.code == "PreconditionFailed"),
        ({"if-unmodified-since": "Thu, 01 Jan 2015 00:00:00 GMT"}, lambda said: said.status == 412),
        ({"authorization": "AWS4-HMAC-SHA256 nonsense"}, lambda said: said.status == 400),
        ({"authorization": "AWS who:what"}, lambda said: said.code == "InvalidRequest"),
        ({"x-amz-checksum-mode": "ENABLED"}, lambda said: "x-amz-checksum-type" in said.headers),
        ({"x-amz-expected-bucket-owner": "1"}, lambda said: said.code == "AccessDenied"),
        ({"x-amz-acl": "public-read"}, lambda said: said.status == 400),
        ({"x-amz-tagging": "a=b"}, lambda said: said.code == "NotImplemented"),
        ({"x-zonal-redirect": "1"}, lambda said: said.status == 307),
        ({"x-zonal-mover": "built-in"}, lambda said: said.body == BODY),
        ({"x-zonal-gateway": "0" * 64}, lambda said: said.body == BODY),
        ({"x-zonal-gateway": ""}, lambda said: said.body == BODY),
        ({"x-zonal-stores": ""}, lambda said: ".zonal-worker" in str(said.headers)),
        ({"connection": "close"}, lambda said: said.headers.get("connection") == "close"),
        ({"X-ZONAL-CLIENT": "203.0.113.8"}, lambda said: said.status == 200),
        ({"x-new-header": "1"}, lambda said: _file(said) == _hash(BODY)),
    ],
)
def test_what_says_more_is_decided_anew(
    shelf: Shelf, headers: dict[str, str], is_right: Callable[[Answer], bool]
) -> None:
    before = shelf.repeated
    # A sample that the brain moves itself may come between.
    until(
        lambda: is_right(send(shelf.cluster.url, "GET", shelf.path("k"), shelf.headers | headers))
    )
    assert shelf.repeated == before


@pytest.mark.parametrize("headers", [{}, {"x-zonal-client": CLIENT, "user-agent": "a"}])
def test_what_is_in_memory_is_said_again(direct: Shelf, headers: dict[str, str]) -> None:
    before = direct.repeated
    answers = [direct.ask(**headers) for _ in range(20)]
    assert direct.repeated > before + 10
    for answer in answers:
        assert (answer.status, answer.body) == (200, BODY)
        assert answer.headers["etag"] == f'"{md5(BODY).hex()}"'
        assert answer.headers["content-type"] == "text/x-k"
        assert answer.headers["content-length"] == str(len(BODY))
    assert len({answer.headers["x-amz-request-id"] for answer in answers}) == 20
    # A client's own word for its address is nobody's.
    said = answers[-1].headers["x-amz-request-id"]
    until(lambda: f'"request_id":"{said}"' in direct.cluster.log)
    (line,) = (line for line in direct.cluster.log.splitlines() if said in line)
    assert '"client":"127.0.0.1"' in line
    assert f'"sent_bytes":{len(BODY)}' in line


def test_one_that_is_larger_than_a_packet_is_said_again_whole(direct: Shelf) -> None:
    large = os.urandom(100_000)
    direct.put("large", large)
    direct.rest("large")
    before = direct.repeated
    assert {direct.ask("large").body for _ in range(20)} == {large}
    assert direct.repeated > before + 10


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"range": "bytes=5-9"}, 206),
        ({"if-none-match": f'"{md5(BODY).hex()}"'}, 304),
        ({"x-zonal-redirect": "1"}, 307),
        ({"x-zonal-gateway": "0" * 64, "x-zonal-client": "1.2.3.4", "x-zonal-stores": "z"}, 200),
        ({"expect": "100-continue"}, 200),
        ({"content-length": "0"}, 200),
        ({"upgrade": "h2c", "connection": "upgrade"}, 200),
    ],
)
def test_what_says_more_is_not_said_again(
    direct: Shelf, headers: dict[str, str], status: int
) -> None:
    before = direct.repeated
    answer = send(direct.cluster.url, "GET", direct.path("k"), headers)
    assert answer.status == status
    assert direct.repeated == before


@pytest.mark.parametrize(
    "query", ["?partNumber=1", "?versionId=x", "?response-expires=x", "?acl", "?"]
)
def test_a_query_is_decided_anew(shelf: Shelf, query: str) -> None:
    before = shelf.repeated
    statuses = {shelf.ask(f"k{query}").status for _ in range(3)}
    assert statuses <= {"?": {200}, "?partNumber=1": {206}}.get(query, {400, 501}), statuses
    assert shelf.repeated == before
    head = send(shelf.cluster.url, "HEAD", shelf.path("k"), shelf.headers)
    assert (head.status, head.headers["content-length"]) == (200, str(len(BODY)))
    assert shelf.repeated == before


def test_what_was_decided_for_more_does_not_stand(shelf: Shelf) -> None:
    shelf.put("summed", BODY)
    more = {"x-amz-checksum-mode": "ENABLED"}
    until(lambda: "x-accel-redirect" in shelf.ask("summed", **more).headers)
    assert "x-amz-checksum-type" in shelf.ask("summed", **more).headers
    assert "x-amz-checksum-type" not in shelf.ask("summed").headers
    signed = shelf.signer.sign(
        "GET", shelf.path("summed").replace(shelf.row["public_name"], "shelf")
    )
    own = {name: value for name, value in signed.items() if name != "host"}
    before = shelf.repeated
    for _ in range(5):
        assert send(shelf.cluster.url, "GET", "/shelf/summed", shelf.headers | own).status == 200
        # The owner's name for the bucket is nobody else's.
        assert send(shelf.cluster.url, "GET", "/shelf/summed", shelf.headers).code == "AccessDenied"
    assert shelf.repeated == before


def test_a_stranger_s_long_names_are_not_remembered(direct: Shelf) -> None:
    before = direct.repeated
    for _ in range(5):
        assert direct.ask(host="h" * 300).body == BODY
    assert direct.repeated == before
    direct.headers["host"] = "h" * 200
    direct.rest()


def test_headers_that_change_nothing_change_nothing(shelf: Shelf) -> None:
    before = shelf.repeated
    agent = {"User-Agent": "a", "Accept": "*/*", "cookie": "a=b", "X-Forwarded-For": "1.2.3.4"}
    said = [shelf.ask(**agent) for _ in range(20)]
    assert {_file(answer) for answer in said} == {_hash(BODY)}
    assert shelf.repeated > before + 10


def test_who_names_the_host_twice_is_refused(shelf: Shelf) -> None:
    assert shelf.ask(Host="127.0.0.1").status == 400


def test_it_is_counted_and_logged_as_any_other(shelf: Shelf) -> None:
    shelf.put("eyJh.eyJi.c", BODY)
    shelf.rest("eyJh.eyJi.c")
    said = [shelf.ask("eyJh.eyJi.c").headers["x-amz-request-id"] for _ in range(20)]
    until(lambda: all(f'"request_id":"{each}"' in shelf.cluster.log for each in said))
    lines = [line for line in shelf.cluster.log.splitlines() if any(each in line for each in said)]
    assert len(lines) == 20
    assert not any("eyJi" in line for line in lines)
    shapes = {
        re.sub(r'"(ms|timestamp|request_id|sent_bytes)":[^,]+', r"\1", each) for each in lines
    }
    # Those that the brain moved itself say that by what they sent.
    assert len(shapes) == 1, shapes
    assert f'"client":"{CLIENT}"' in shapes.pop()


def test_a_sample_is_moved_and_checked_by_the_brain(shelf: Shelf) -> None:
    before = shelf.repeated
    asked = 0

    def is_moved() -> bool:
        nonlocal asked
        asked += 1
        return shelf.ask().body == BODY

    until(is_moved, seconds=60.0)
    assert shelf.repeated <= before + asked - 1
