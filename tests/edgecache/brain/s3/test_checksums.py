"""Checksums: sent, verified, stored and returned; a body that differs is never stored."""

import base64
import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from awscrt import checksums as crt
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.multipart.support import Upload
from tests.edgecache.brain.s3.raw import Signer, md5
from tests.edgecache.cluster import Cluster, Keys

BODY = b"some bytes" * 1000


def text(digest: bytes) -> str:
    """Return base64."""
    return base64.b64encode(digest).decode()


DIGESTS: dict[str, Callable[[bytes], str]] = {
    "crc32": lambda body: text(zlib.crc32(body).to_bytes(4, "big")),
    "crc32c": lambda body: text(crt.crc32c(body).to_bytes(4, "big")),
    "crc64nvme": lambda body: text(crt.crc64nvme(body).to_bytes(8, "big")),
    "sha1": lambda body: text(hashlib.sha1(body, usedforsecurity=False).digest()),
    "sha256": lambda body: text(hashlib.sha256(body).digest()),
}


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


@pytest.mark.parametrize("name", DIGESTS)
def test_each_algorithm_is_verified_stored_and_returned(signer: Signer, name: str) -> None:
    header = f"x-amz-checksum-{name}"
    value = DIGESTS[name](BODY)
    put = signer.send("PUT", "/docs/k", BODY, {header: value})
    assert (put.status, put.headers[header]) == (200, value)
    assert put.headers["x-amz-checksum-type"] == "FULL_OBJECT"
    got = signer.send("GET", "/docs/k", headers={"x-amz-checksum-mode": "ENABLED"})
    assert (got.body, got.headers[header]) == (BODY, value)
    assert header not in signer.send("GET", "/docs/k").headers
    part = {"x-amz-checksum-mode": "ENABLED", "range": "bytes=0-1"}
    assert header not in signer.send("GET", "/docs/k", headers=part).headers


def test_a_wrong_checksum_is_a_bad_digest(signer: Signer) -> None:
    for name, digest in DIGESTS.items():
        value = digest(BODY + b"x")
        answer = signer.send("PUT", "/docs/k", BODY, {f"x-amz-checksum-{name}": value})
        assert (answer.status, answer.code) == (400, "BadDigest")
        assert signer.send("GET", "/docs/k").code == "NoSuchKey"


def test_content_md5_is_verified(signer: Signer) -> None:
    right = text(md5(BODY))
    assert signer.send("PUT", "/docs/k", BODY, {"content-md5": right}).status == 200
    wrong = text(md5(b""))
    for value, code in ((wrong, "BadDigest"), ("abc", "InvalidDigest"), ("", "InvalidDigest")):
        answer = signer.send("PUT", "/docs/l", BODY, {"content-md5": value})
        assert (answer.status, answer.code) == (400, code)


def test_an_invalid_checksum_header_is_refused(signer: Signer) -> None:
    for headers in [
        {"x-amz-checksum-crc32": "abc"},
        {"x-amz-checksum-sha256": DIGESTS["crc32"](BODY)},
        {
            "x-amz-checksum-crc32": DIGESTS["crc32"](BODY),
            "x-amz-checksum-sha1": DIGESTS["sha1"](BODY),
        },
        {"x-amz-sdk-checksum-algorithm": "MD4"},
        {"x-amz-trailer": "x-amz-meta-late"},
    ]:
        answer = signer.send("PUT", "/docs/k", BODY, headers)
        assert (answer.status, answer.code) == (400, "InvalidRequest")


def test_an_upload_without_a_checksum_gets_one(signer: Signer) -> None:
    put = signer.send("PUT", "/docs/k", BODY)
    assert put.headers["x-amz-checksum-crc64nvme"] == DIGESTS["crc64nvme"](BODY)


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
def test_boto3_sends_and_verifies_each_of_them(s3: Any, bucket: str, algorithm: str) -> None:
    put = s3.put_object(Bucket=bucket, Key="k", Body=BODY, ChecksumAlgorithm=algorithm)
    wanted = DIGESTS[algorithm.lower()](BODY)
    assert put[f"Checksum{algorithm}"] == wanted
    got = s3.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert (got["Body"].read(), got[f"Checksum{algorithm}"]) == (BODY, wanted)
    known = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["Checksum"])
    assert known["Checksum"] == {f"Checksum{algorithm}": wanted, "ChecksumType": "FULL_OBJECT"}


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
def test_a_copy_has_the_checksum_that_was_asked_for(s3: Any, bucket: str, algorithm: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=BODY, ChecksumAlgorithm="CRC32")
    source = {"Bucket": bucket, "CopySource": f"{bucket}/k"}
    copied = s3.copy_object(**source, Key="copy", ChecksumAlgorithm=algorithm)["CopyObjectResult"]
    again = {"Bucket": bucket, "CopySource": f"{bucket}/copy"}
    copied_again = s3.copy_object(**again, Key="third")["CopyObjectResult"]
    wanted = {f"Checksum{algorithm}": DIGESTS[algorithm.lower()](BODY)}
    for said in (copied, copied_again):
        assert {name: said[name] for name in said if name.startswith("Checksum")} == {
            **wanted,
            "ChecksumType": "FULL_OBJECT",
        }
    head = s3.head_object(Bucket=bucket, Key="third", ChecksumMode="ENABLED")
    assert {name: head[name] for name in wanted} == wanted


def test_a_copy_of_an_upload_in_parts_has_a_checksum_of_the_whole(s3: Any, bucket: str) -> None:
    upload = Upload(s3, "parts", ChecksumAlgorithm="SHA1")
    upload.add(1, BODY, ChecksumAlgorithm="SHA1")
    upload.complete()
    source = {"Bucket": bucket, "CopySource": f"{bucket}/parts"}
    copied = s3.copy_object(**source, Key="copy")["CopyObjectResult"]
    assert (copied["ChecksumSHA1"], copied["ChecksumType"]) == (
        DIGESTS["sha1"](BODY),
        "FULL_OBJECT",
    )


def test_a_wrong_checksum_through_boto3_stores_nothing(s3: Any, bucket: str) -> None:
    with pytest.raises(ClientError) as refused:
        s3.put_object(Bucket=bucket, Key="k", Body=BODY, ChecksumSHA256=DIGESTS["sha256"](b""))
    assert refused.value.response["Error"]["Code"] == "BadDigest"
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
