"""Checksums of S3: reckoned while bytes pass, compared with what the client said, kept, returned.

Kept as ``{"crc32": base64, …, "type": "FULL_OBJECT" | "COMPOSITE"}``; a composite one is the
checksum of the parts' checksums, with ``-N`` behind it.
"""

import base64
import hashlib
import zlib
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from awscrt import checksums as crt

from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.requests import S3Request
from edgecache.brain.values import Manifest

HEADER: Final = "x-amz-checksum-"
TRAILER_HEADER: Final = "x-amz-trailer"
MODE_HEADER: Final = "x-amz-checksum-mode"
FULL: Final = "FULL_OBJECT"
COMPOSITE: Final = "COMPOSITE"
# name: bytes of a digest
SIZES: Final[Mapping[str, int]] = {
    "crc32": 4,
    "crc32c": 4,
    "crc64nvme": 8,
    "sha1": 20,
    "sha256": 32,
}
# What AWS keeps of an upload that names no checksum of its own.
DEFAULT: Final = "crc64nvme"
_CRCS: Final = {
    "crc32": zlib.crc32,
    "crc32c": crt.crc32c,
    "crc64nvme": crt.crc64nvme,
}
COMBINES: Final = {
    "crc32": crt.combine_crc32,
    "crc32c": crt.combine_crc32c,
    "crc64nvme": crt.combine_crc64nvme,
}


class Running(Protocol):
    """A checksum that is being reckoned."""

    def update(self, data: bytes, /) -> object: ...
    def digest(self) -> bytes: ...


class _Crc:
    def __init__(self, name: str) -> None:
        self._step = _CRCS[name]
        self._size = SIZES[name]
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = self._step(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(self._size, "big")


def running(name: str) -> Running:
    """Begin to reckon a checksum."""
    if name == "sha1":
        return hashlib.sha1(usedforsecurity=False)
    return hashlib.sha256() if name == "sha256" else _Crc(name)


def text(digest: bytes) -> str:
    """Give a digest as headers carry it."""
    return base64.b64encode(digest).decode()


@dataclass(frozen=True, slots=True)
class Claims:
    """What a request says of its body. values: in its headers. trailing: named, to come behind it.

    name: the algorithm, whichever way it is named; empty when none is. md5: Content-MD5.
    """

    values: Mapping[str, str]
    trailing: str
    name: str
    md5: bytes | None


def claims_of(request: S3Request) -> Claims:
    """Read what a request says of its body.

    Raises S3Error: InvalidRequest, InvalidDigest.
    """
    values = declared(request)
    behind = trailing(request)
    name = behind or next(iter(values), "")
    named = algorithm(request)
    if (name and named and name != named) or (behind and values and behind not in values):
        raise S3Error("InvalidRequest", "Value for x-amz-sdk-checksum-algorithm header is invalid.")
    return Claims(values, behind, name or named, content_md5(request))


def declared(request: S3Request) -> dict[str, str]:
    """Give the checksums that a request's headers claim for its body: at most one.

    Raises S3Error InvalidRequest: several, or one that cannot be.
    """
    found = {
        name: request.header(HEADER + name) for name in SIZES if HEADER + name in request.headers
    }
    if len(found) > 1:
        raise S3Error(
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )
    for name, value in found.items():
        check_form(name, value)
    return found


def trailing(request: S3Request) -> str:
    """Give the name of the checksum that follows the body, empty when none does.

    Raises S3Error InvalidRequest: an unknown trailer.
    """
    trailer = request.header(TRAILER_HEADER).lower()
    if not trailer:
        return ""
    name = trailer.removeprefix(HEADER)
    if name not in SIZES or name == trailer:
        raise S3Error(
            "InvalidRequest", "The value specified in the x-amz-trailer header is not supported"
        )
    return name


def algorithm(request: S3Request) -> str:
    """Give the algorithm that a request names without a value; empty when it names none.

    Raises S3Error InvalidRequest.
    """
    given = request.header("x-amz-checksum-algorithm") or request.header(
        "x-amz-sdk-checksum-algorithm"
    )
    if given and given.lower() not in SIZES:
        raise S3Error(
            "InvalidRequest",
            "Checksum algorithm provided is unsupported. Please try again with any of the valid "
            "types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]",
        )
    return given.lower()


def check_form(name: str, value: str) -> None:
    """Refuse a value that no digest of this algorithm has.

    Raises S3Error InvalidRequest.
    """
    try:
        size = len(base64.b64decode(value, validate=True))
    except (Base64Error, ValueError):
        size = -1
    if size != SIZES[name]:
        raise S3Error("InvalidRequest", f"Value for {HEADER}{name} header is invalid.")


def content_md5(request: S3Request) -> bytes | None:
    """Give the Content-MD5 of a request.

    Raises S3Error InvalidDigest.
    """
    if "content-md5" not in request.headers:
        return None
    try:
        digest = base64.b64decode(request.header("content-md5"), validate=True)
    except (Base64Error, ValueError):
        raise S3Error("InvalidDigest") from None
    if len(digest) != hashlib.md5(usedforsecurity=False).digest_size:
        raise S3Error("InvalidDigest")
    return digest


def of_manifest(name: str, manifest: Manifest) -> str:
    """Give a checksum that the manifest knows already; empty for the others."""
    if name == "sha256":
        return text(manifest.sha256)
    return text(manifest.crc32.to_bytes(4, "big")) if name == "crc32" else ""


def composite(name: str, parts: Sequence[str]) -> str:
    """Give the checksum of the parts' checksums, as COMPOSITE uploads have it."""
    whole = running(name)
    for part in parts:
        whole.update(base64.b64decode(part))
    return f"{text(whole.digest())}-{len(parts)}"


def joined(name: str, parts: Iterable[tuple[str, int]]) -> str:
    """Give the CRC of a whole out of its parts' CRCs and sizes, without its bytes."""
    combine = COMBINES[name]
    value = 0
    for checksum, size in parts:
        value = combine(value, int.from_bytes(base64.b64decode(checksum), "big"), size)
    return text(value.to_bytes(SIZES[name], "big"))


def are_wanted(request: S3Request) -> bool:
    """True if a GET or HEAD is to return the object's checksums."""
    return request.header(MODE_HEADER).upper() == "ENABLED"


def headers(checksums: Mapping[str, str]) -> list[tuple[str, str]]:
    """Give the headers of an answer that returns what is kept."""
    found = [(HEADER + name, value) for name, value in checksums.items() if name in SIZES]
    if found:
        found.append((HEADER + "type", checksums.get("type", FULL)))
    return found


def elements(checksums: Mapping[str, str]) -> list[tuple[str, str]]:
    """Give the same as elements of an XML answer (``ChecksumCRC32``, …)."""
    found = [(element(name), value) for name, value in checksums.items() if name in SIZES]
    if found:
        found.append(("ChecksumType", checksums.get("type", FULL)))
    return found


def element(name: str) -> str:
    """Give the XML name of an algorithm's value."""
    return f"Checksum{name.upper()}"
