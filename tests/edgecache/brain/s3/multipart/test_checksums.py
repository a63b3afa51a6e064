"""Checksums of parts, and of the objects that they become."""

import base64
import hashlib
import zlib
from functools import partial
from typing import Any

import pytest
from awscrt import checksums as crt

from tests.edgecache.brain.s3.multipart.support import BODIES, Upload, refused
from tests.edgecache.brain.s3.raw import Signer

# Parts of an upload have 5 MiB at least.
pytestmark = pytest.mark.slow


def crc32(body: bytes) -> str:
    """Return it in base64."""
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


def test_a_composite_checksum_covers_the_parts_checksums(s3: Any, bucket: str) -> None:
    upload = Upload(s3, ChecksumAlgorithm="SHA256")
    for number, body in enumerate(BODIES, 1):
        upload.add(number, body, ChecksumAlgorithm="SHA256")
    done = upload.complete()
    digest = hashlib.sha256(b"".join(hashlib.sha256(body).digest() for body in BODIES)).digest()
    assert done["ChecksumSHA256"] == base64.b64encode(digest).decode() + "-3"
    assert done["ChecksumType"] == "COMPOSITE"
    got = s3.get_object(Bucket=bucket, Key="big", ChecksumMode="ENABLED")
    assert got["ChecksumSHA256"] == done["ChecksumSHA256"]
    got["Body"].read()


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME"])
def test_a_full_checksum_covers_the_whole_object(s3: Any, bucket: str, algorithm: str) -> None:
    upload = Upload(s3, ChecksumAlgorithm=algorithm, ChecksumType="FULL_OBJECT")
    for number, body in enumerate(BODIES, 1):
        upload.add(number, body, ChecksumAlgorithm=algorithm)
    done = upload.complete()
    whole = b"".join(BODIES)
    value, size = {
        "CRC32": (zlib.crc32(whole), 4),
        "CRC32C": (crt.crc32c(whole), 4),
        "CRC64NVME": (crt.crc64nvme(whole), 8),
    }[algorithm]
    assert done[f"Checksum{algorithm}"] == base64.b64encode(value.to_bytes(size, "big")).decode()
    assert done["ChecksumType"] == "FULL_OBJECT"
    got = s3.get_object(Bucket=bucket, Key="big", ChecksumMode="ENABLED")
    assert got["Body"].read() == whole


@pytest.mark.parametrize("kind", ["COMPOSITE", "FULL_OBJECT"])
def test_a_completion_s_checksum_is_the_object_s_and_parts_have_their_own(
    s3: Any, bucket: str, kind: str
) -> None:
    upload = Upload(s3, ChecksumAlgorithm="CRC32", ChecksumType=kind)
    for number, body in enumerate(BODIES, 1):
        upload.add(number, body, ChecksumAlgorithm="CRC32")
    if kind == "FULL_OBJECT":
        right, wrong = crc32(b"".join(BODIES)), crc32(BODIES[0])
    else:
        parts = b"".join(zlib.crc32(body).to_bytes(4, "big") for body in BODIES)
        right, wrong = f"{crc32(parts)}-3", f"{crc32(parts)}-2"
    other = "FULL_OBJECT" if kind == "COMPOSITE" else "COMPOSITE"
    for options, code in (
        ({"ChecksumCRC32": wrong}, "BadDigest"),
        ({"ChecksumCRC32": "x"}, "InvalidRequest"),
        ({"ChecksumCRC32": right, "ChecksumType": other}, "InvalidRequest"),
        ({"ChecksumSHA1": base64.b64encode(bytes(20)).decode()}, "InvalidRequest"),
    ):
        assert refused(partial(upload.complete, **options)) == (400, code), options
    done = upload.complete(ChecksumCRC32=right, ChecksumType=kind)
    assert (done["ChecksumCRC32"], done["ChecksumType"]) == (right, kind)

    named = {"Bucket": bucket, "Key": "big"}
    own = [crc32(body) for body in BODIES]

    part = s3.get_object(**named, PartNumber=2, ChecksumMode="ENABLED")
    assert (part["ChecksumCRC32"], part["ChecksumType"]) == (own[1], kind)
    # The client compares them.
    assert part["Body"].read() == BODIES[1]
    head = s3.head_object(**named, PartNumber=3, ChecksumMode="ENABLED")
    assert head["ChecksumCRC32"] == own[2]
    known = s3.get_object_attributes(**named, ObjectAttributes=["ObjectParts"])
    assert [row["ChecksumCRC32"] for row in known["ObjectParts"]["Parts"]] == own
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=named)
    copy = {"Bucket": bucket, "Key": "copy"}
    whole = s3.head_object(**copy, ChecksumMode="ENABLED")
    part = s3.head_object(**copy, PartNumber=1, ChecksumMode="ENABLED")
    assert part.get("ChecksumCRC32") == whole.get("ChecksumCRC32")
    assert "PartsCount" not in part


def test_a_completion_s_checksum_needs_no_algorithm_at_creation(s3: Any, bucket: str) -> None:
    upload = Upload(s3)
    upload.add(1, b"whole", ChecksumAlgorithm="CRC32")
    assert refused(lambda: upload.complete(ChecksumCRC32=crc32(b"wrong"))) == (400, "BadDigest")
    missing = base64.b64encode(bytes(4)).decode()
    assert refused(lambda: upload.complete(ChecksumCRC32C=missing)) == (400, "InvalidRequest")
    assert upload.complete(ChecksumCRC32=crc32(b"whole"))["ChecksumCRC32"] == crc32(b"whole")


def test_impossible_checksums_of_uploads_are_refused(signer: Signer, s3: Any, bucket: str) -> None:
    for headers in (
        {"x-amz-checksum-algorithm": "MD5"},
        {"x-amz-checksum-type": "FULL_OBJECT"},
        {"x-amz-checksum-algorithm": "SHA256", "x-amz-checksum-type": "FULL_OBJECT"},
        {"x-amz-checksum-algorithm": "CRC64NVME", "x-amz-checksum-type": "COMPOSITE"},
        {"x-amz-checksum-algorithm": "CRC32", "x-amz-checksum-type": "HALF"},
    ):
        answer = signer.send("POST", "/docs/big?uploads=", headers=headers)
        assert (answer.status, answer.code) == (400, "InvalidRequest")
    upload = Upload(s3, ChecksumAlgorithm="SHA256")
    assert refused(lambda: upload.add(1, b"x", ChecksumAlgorithm="CRC32")) == (
        400,
        "InvalidRequest",
    )
    wrong = refused(
        lambda: upload.add(1, b"x", ChecksumSHA256=base64.b64encode(bytes(32)).decode())
    )
    assert wrong == (400, "BadDigest")
