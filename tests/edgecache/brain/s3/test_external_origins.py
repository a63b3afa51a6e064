"""Buckets with an external origin: a miss, then hits; many requests for an uncached key."""

import asyncio
import hashlib
import os
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import quote, unquote

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.cdn.conftest import Origin as RangedOrigin
from tests.edgecache.brain.cdn.conftest import OriginAnswer
from tests.edgecache.brain.s3.raw import EMPTY, Signer, md5
from tests.edgecache.cluster import Cluster, Keys
from tests.http_server import HttpServer

CROWD = 1000
BODY = os.urandom(300_000)


class Origin(HttpServer):
    """An HTTP origin that counts its requests, and waits for tests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked: Counter[str] = Counter()
        self.gate = threading.Event()
        self.gate.set()

    @property
    def url(self) -> str:
        """Return its URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Answering(BaseHTTPRequestHandler):
    """Responds to the brain."""

    protocol_version = "HTTP/1.1"
    server: Origin

    def do_GET(self) -> None:
        """Answer a GET."""
        path = unquote(self.path)
        self.server.asked[f"GET {path}"] += 1
        self.server.gate.wait(20)
        if path.startswith("/absent"):
            self._send(404, b"")
        elif path.startswith("/broken"):
            self._send(500, b"secret inside")
        elif path.startswith("/short"):
            self._send(200, BODY, announced=len(BODY) + 100)
        else:
            self._send(200, BODY)

    def do_HEAD(self) -> None:
        """Answer a HEAD."""
        self.server.asked[f"HEAD {self.path}"] += 1
        self._send(200, b"", announced=len(BODY))

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""

    def _send(self, status: int, body: bytes, announced: int = -1) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if announced < 0 else announced))
        self.send_header("ETag", '"v1"')
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Type", "image/webp")
        self.end_headers()
        self.wfile.write(body)
        if announced > len(body):
            self.close_connection = True


@pytest.fixture
def origin() -> Iterator[Origin]:
    """Return an origin."""
    server = Origin()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.gate.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def pulled(cluster: Cluster, keys: Keys, origin: Origin) -> str:
    """Return a bucket over it."""
    made = cluster.call(
        "POST",
        f"/v1/origins?{keys.scope}",
        {"name": "web", "kind": "http", "config": {"url": origin.url}},
    )
    cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "pulled", "origin_id": made["id"]})
    return "pulled"


def test_the_second_get_needs_no_origin(s3: Any, origin: Origin, pulled: str) -> None:
    for _ in range(3):
        got = s3.get_object(Bucket=pulled, Key="a b/ü.webp")
        assert (got["Body"].read(), got["ContentType"]) == (BODY, "image/webp")
    assert origin.asked["GET /a b/ü.webp"] == 1
    part = s3.get_object(Bucket=pulled, Key="a b/ü.webp", Range="bytes=1000-1999")
    assert part["Body"].read() == BODY[1000:2000]
    assert s3.head_object(Bucket=pulled, Key="a b/ü.webp")["ContentLength"] == len(BODY)
    assert origin.asked["GET /a b/ü.webp"] == 1


def test_a_copy_from_an_origin_has_the_checksum_that_was_asked_for(
    s3: Any, bucket: str, pulled: str
) -> None:
    wanted = b64encode(hashlib.sha1(BODY, usedforsecurity=False).digest()).decode()
    for key in ("cold", "cold"):
        source = {"CopySource": f"{pulled}/{key}", "ChecksumAlgorithm": "SHA1"}
        copied = s3.copy_object(Bucket=bucket, Key="copy", **source)["CopyObjectResult"]
        assert copied["ChecksumSHA1"] == wanted
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == BODY


def test_a_condition_of_a_delete_is_not_left_to_an_origin(
    cluster: Cluster, keys: Keys, pulled: str
) -> None:
    signer = Signer(keys, cluster.url)
    for name in ("if-match", "x-amz-if-match-last-modified-time", "x-amz-if-match-size"):
        for target in (f"/{pulled}/k", f"/{pulled}/k?versionId={'0' * 32}"):
            one = signer.send("DELETE", target, headers={name: "5"})
            assert (one.status, f"of a delete ({name})" in one.text("Message")) == (501, True)
    for name in ("ETag", "LastModifiedTime", "Size"):
        rows = f"<Delete><Object><Key>k</Key><{name}>5</{name}></Object></Delete>".encode()
        digest = {"content-md5": b64encode(md5(rows)).decode()}
        many = signer.send("POST", f"/{pulled}?delete", rows, digest)
        assert (many.code, many.text("Key")) == ("NotImplemented", "k")
        assert name in many.text("Message")


def test_an_etag_that_must_not_be_there_is_not_left_to_an_origin(
    cluster: Cluster, keys: Keys, bucket: str, pulled: str
) -> None:
    signer = Signer(keys, cluster.url)
    signer.send("PUT", f"/{bucket}/k", b"bytes")
    for headers in ({}, {"x-amz-copy-source": f"{bucket}/k"}):
        wanted = {**headers, "if-none-match": '"v1"'}
        answer = signer.send("PUT", f"/{pulled}/k", headers=wanted)
        assert (answer.status, "If-None-Match" in answer.text("Message")) == (501, True)


def test_a_range_of_an_uncached_object_is_correct(s3: Any, origin: Origin, pulled: str) -> None:
    got = s3.get_object(Bucket=pulled, Key="cold", Range="bytes=299990-")
    assert (got["Body"].read(), got["ContentRange"]) == (
        BODY[299990:],
        "bytes 299990-299999/300000",
    )


def test_a_cold_range_is_asked_for_as_a_range(cluster: Cluster, keys: Keys, s3: Any) -> None:
    large = OriginAnswer(200, {"ETag": '"v1"'}, BODY * 40, has_ranges=True)
    server = RangedOrigin()
    server.said["/large"] = large
    described = {"name": "ranged", "kind": "http", "config": {"url": server.url}}
    made = cluster.call("POST", f"/v1/origins?{keys.scope}", described)
    cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "ranged", "origin_id": made["id"]})
    get = partial(s3.get_object, Bucket="ranged", Key="large")

    got = get(Range="bytes=-7")
    size = len(large.body)
    assert (got["Body"].read(), got["ETag"]) == (large.body[-7:], '"v1"')
    assert got["ContentRange"] == f"bytes {size - 7}-{size - 1}/{size}"
    with pytest.raises(ClientError, match="InvalidRange"):
        get(Range=f"bytes={size}-")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        get(Range="bytes=1-2", IfMatch='"v2"')
    assert [asked.headers.get("range") for asked in server.asked if asked.method == "GET"] == [
        "bytes=-7",
        f"bytes={size}-",
        "bytes=1-2",
    ]
    server.shutdown()
    server.server_close()


def test_an_object_of_unknown_length_comes_in_chunks(cluster: Cluster, keys: Keys, s3: Any) -> None:
    server = RangedOrigin()
    server.said["/k"] = OriginAnswer(200, {"Cache-Control": "no-store"}, BODY, has_length=False)
    described = {"name": "chunked", "kind": "http", "config": {"url": server.url}}
    made = cluster.call("POST", f"/v1/origins?{keys.scope}", described)
    cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "chunked", "origin_id": made["id"]})
    for _ in range(2):
        assert s3.get_object(Bucket="chunked", Key="k")["Body"].read() == BODY
    assert "ContentLength" not in s3.head_object(Bucket="chunked", Key="k")
    server.shutdown()
    server.server_close()


def test_a_thousand_requests_for_an_uncached_object_cost_one_fetch(
    cluster: Cluster, keys: Keys, origin: Origin, pulled: str
) -> None:
    origin.gate.clear()
    target = f"/{pulled}/{quote('wanted by all')}"
    headers = Signer(keys, cluster.url).sign("GET", target, payload=EMPTY)
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    request = "\r\n".join([*lines, "connection: close", "", ""]).encode()
    waiting = 0

    async def one() -> str:
        nonlocal waiting
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.port)
        writer.write(request)
        waiting += 1
        if waiting == CROWD:
            origin.gate.set()
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        digest = hashlib.sha256()
        while piece := await reader.read(2**18):
            digest.update(piece)
        writer.close()
        return digest.hexdigest()

    async def main() -> set[str]:
        return set(await asyncio.gather(*(one() for _ in range(CROWD))))

    assert asyncio.run(main()) == {hashlib.sha256(BODY).hexdigest()}
    assert origin.asked == {"GET /wanted by all": 1}


@pytest.mark.parametrize(
    ("key", "status", "code"),
    [("absent", 404, "NoSuchKey"), ("broken", 502, "OriginFailed")],
)
def test_an_error_of_the_origin_becomes_an_s3_error(
    cluster: Cluster, keys: Keys, pulled: str, key: str, status: int, code: str
) -> None:
    answer = Signer(keys, cluster.url).send("GET", f"/{pulled}/{key}")
    assert (answer.status, answer.code) == (status, code)
    assert b"secret inside" not in answer.body
    assert b"127.0.0.1" not in answer.body


def test_an_origin_that_sends_a_wrong_length_ends_the_connection(
    s3: Any, pulled: str, origin: Origin
) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match=r"(?i)incomplete|closed|reset|expected|OriginFailed"):
            s3.get_object(Bucket=pulled, Key="short")["Body"].read()
    # It was not stored.
    assert origin.asked["GET /short"] == 2


def test_a_write_to_a_read_only_origin_is_refused(s3: Any, pulled: str) -> None:
    for work in (
        partial(s3.put_object, Bucket=pulled, Key="k", Body=b"x"),
        partial(s3.delete_object, Bucket=pulled, Key="k"),
    ):
        with pytest.raises(ClientError) as refused:
            work()
        assert refused.value.response["Error"]["Code"] == "MethodNotAllowed"


def test_an_origin_s_objects_have_no_tags_here(s3: Any, pulled: str) -> None:
    options = {"Bucket": pulled, "Key": "k"}
    assert s3.get_object_tagging(**options)["TagSet"] == []
    for work in (
        partial(s3.put_object_tagging, **options, Tagging={"TagSet": []}),
        partial(s3.delete_object_tagging, **options),
        partial(s3.put_object, **options, Body=b"x", Tagging="a=b"),
        partial(s3.create_multipart_upload, **options, Tagging="a=b"),
    ):
        with pytest.raises(ClientError) as refused:
            work()
        assert refused.value.response["Error"]["Code"] == "NotImplemented"
