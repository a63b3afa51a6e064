"""``aws-chunked`` bodies against the running server: signed, unsigned, with trailers, altered."""

import base64
import hashlib
import hmac
import zlib
from datetime import UTC, datetime

import pytest

from tests.edgecache.brain.s3.raw import EMPTY, Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys

BODY = bytes(range(256)) * 600
PIECE = 65536
CRC32 = base64.b64encode(zlib.crc32(BODY).to_bytes(4, "big")).decode()
UNSIGNED = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"


class Framer:
    """Encodes a body in chunks."""

    def __init__(self, signer: Signer, kind: str, trailer: str = "") -> None:
        self.signer, self.kind, self.trailer = signer, kind, trailer
        self.now = datetime.now(UTC)
        self.amz_date = self.now.strftime("%Y%m%dT%H%M%SZ")
        headers = {
            "content-encoding": "aws-chunked",
            "x-amz-decoded-content-length": str(len(BODY)),
        }
        if trailer:
            headers["x-amz-trailer"] = trailer.partition(":")[0]
        self.headers = signer.sign("PUT", "/docs/k", headers, payload=kind, now=self.now)
        self.previous = self.headers["authorization"].rpartition("=")[2]

    def signature(self, label: str, *parts: str) -> str:
        """Sign the next thing in the chain."""
        scope = f"{self.amz_date[:8]}/{self.signer.region}/s3/aws4_request"
        text = "\n".join([label, self.amz_date, scope, self.previous, *parts])
        key = self.signer.key(self.amz_date[:8])
        self.previous = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return self.previous

    def body(self) -> bytes:
        """Return the encoded body."""
        framed = b""
        for start in range(0, len(BODY) + PIECE, PIECE):
            piece = BODY[start : start + PIECE]
            framed += f"{len(piece):x}".encode()
            if self.kind != UNSIGNED:
                digest = hashlib.sha256(piece).hexdigest()
                signed = self.signature("AWS4-HMAC-SHA256-PAYLOAD", EMPTY, digest)
                framed += f";chunk-signature={signed}".encode()
            framed += b"\r\n" + piece + (b"\r\n" if piece else b"")
        if self.trailer:
            framed += self.trailer.encode() + b"\r\n"
        if self.kind == SIGNED_TRAILER:
            digest = hashlib.sha256(f"{self.trailer}\n".encode()).hexdigest()
            signed = self.signature("AWS4-HMAC-SHA256-TRAILER", digest)
            framed += f"x-amz-trailer-signature:{signed}\r\n".encode()
        return framed + b"\r\n"

    def send(self, body: bytes) -> Answer:
        """Send it."""
        return send(self.signer.url, "PUT", "/docs/k", self.headers, body)


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


CRC = f"x-amz-checksum-crc32:{CRC32}"
KINDS = [(SIGNED, ""), (SIGNED_TRAILER, CRC), (UNSIGNED, CRC)]


@pytest.mark.parametrize(("kind", "trailer"), KINDS)
def test_a_chunked_body_is_stored_decoded(signer: Signer, kind: str, trailer: str) -> None:
    framer = Framer(signer, kind, trailer)
    answer = framer.send(framer.body())
    assert answer.status == 200, answer.body
    got = signer.send("GET", "/docs/k", headers={"x-amz-checksum-mode": "ENABLED"})
    assert got.body == BODY
    assert "content-encoding" not in got.headers
    if trailer:
        assert got.headers["x-amz-checksum-crc32"] == CRC32


@pytest.mark.parametrize(("kind", "trailer"), KINDS[:2])
def test_an_altered_body_is_refused(signer: Signer, kind: str, trailer: str) -> None:
    framer = Framer(signer, kind, trailer)
    body = bytearray(framer.body())
    body[100_000] ^= 1
    answer = framer.send(bytes(body))
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")
    assert signer.send("GET", "/docs/k").code == "NoSuchKey"


def test_a_wrong_trailing_checksum_is_refused(signer: Signer) -> None:
    for kind in (UNSIGNED, SIGNED_TRAILER):
        framer = Framer(signer, kind, "x-amz-checksum-crc32:AAAAAA==")
        answer = framer.send(framer.body())
        assert (answer.status, answer.code) == (400, "BadDigest")
    framer = Framer(signer, UNSIGNED, CRC)
    answer = framer.send(framer.body().replace(CRC.encode() + b"\r\n", b""))
    assert (answer.status, answer.code) == (400, "MalformedTrailerError")


def test_a_body_that_cannot_have_the_announced_checksum_is_refused(signer: Signer) -> None:
    headers = {"x-amz-trailer": "x-amz-checksum-crc32"}
    for key in ("small", "large"):
        body = BODY * (1 if key == "small" else 10)
        answer = signer.send("PUT", f"/docs/{key}", body, headers, payload="UNSIGNED-PAYLOAD")
        assert (answer.status, answer.code) == (400, "InvalidRequest")
        assert signer.send("GET", f"/docs/{key}").code == "NoSuchKey"


def test_a_trailer_that_was_not_signed_is_refused(signer: Signer) -> None:
    framer = Framer(signer, SIGNED_TRAILER, CRC)
    body = framer.body().replace(CRC32.encode(), b"AAAAAA==")
    answer = framer.send(body)
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")


def test_fewer_or_more_bytes_than_announced_are_refused(signer: Signer) -> None:
    framer = Framer(signer, UNSIGNED, CRC)
    for body, code in (
        (f"10\r\n{'x' * 16}\r\n0\r\n{CRC}\r\n\r\n".encode(), "IncompleteBody"),
        (f"{len(BODY) + 1:x}\r\n".encode() + BODY + b"x\r\n0\r\n\r\n", "InvalidChunkSizeError"),
        (b"ffffffffffffffff\r\n", "InvalidChunkSizeError"),
        (b"-5\r\nabcde\r\n", "InvalidChunkSizeError"),
        # AWS has the same limit.
        (b"1fff\r\n" + BODY[:8191] + b"\r\n1\r\nx\r\n0\r\n\r\n", "InvalidChunkSizeError"),
    ):
        assert framer.send(body).code == code


def test_the_decoded_length_is_required(signer: Signer) -> None:
    answer = signer.send("PUT", "/docs/k", b"0\r\n\r\n", payload=UNSIGNED)
    assert (answer.status, answer.code) == (411, "MissingContentLength")


def test_an_upload_beyond_five_gibibytes_is_refused_immediately(signer: Signer) -> None:
    headers = signer.sign("PUT", "/docs/k", {"content-length": str(5 * 2**30 + 1)}, payload=EMPTY)
    answer = send(signer.url, "PUT", "/docs/k", headers)
    assert (answer.status, answer.code) == (400, "EntityTooLarge")
