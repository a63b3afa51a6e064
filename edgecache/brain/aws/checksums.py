"""S3's checksums: computed while bytes pass, compared with the client's, stored, returned.

Stored as ``{"crc32": base64, …, "type": "FULL_OBJECT" | "COMPOSITE"}``; a composite one is the
checksum of the parts' checksums, followed by ``-N``. If the client named the algorithm, the parts'
checksums are in ``"parts"``, separated by commas. An object made of parts has its upload's id in
``"upload"``, by which a repeated completion is recognized.
"""

import base64
import hashlib
import zlib
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from awscrt import checksums as crt

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.core.values import BlobManifest, ObjectVersion

HEADER: Final = "x-amz-checksum-"
TRAILER_HEADER: Final = "x-amz-trailer"
TYPE_HEADER: Final = "x-amz-checksum-type"
MODE_HEADER: Final = "x-amz-checksum-mode"
FULL: Final = "FULL_OBJECT"
COMPOSITE: Final = "COMPOSITE"
PARTS: Final = "parts"
UPLOAD: Final = "upload"
# By name: bytes of a digest.
SIZES: Final[Mapping[str, int]] = {
    "crc32": 4,
    "crc32c": 4,
    "crc64nvme": 8,
    "sha1": 20,
    "sha256": 32,
}
# AWS stores this for an upload that names no checksum.
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


class RunningChecksum(Protocol):
    """A checksum that is being computed."""

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


def new_checksum(name: str) -> RunningChecksum:
    """Return a checksum that has seen no bytes yet."""
    if name == "sha1":
        return hashlib.sha1(usedforsecurity=False)
    return hashlib.sha256() if name == "sha256" else _Crc(name)


def encode(digest: bytes) -> str:
    """Return a digest as headers have it."""
    return base64.b64encode(digest).decode()


@dataclass(frozen=True, slots=True)
class DeclaredDigests:
    """The digests that a request declares for its body.

    values: checksums in its headers. trailing: name of the checksum in the trailer. name: the
    algorithm, however it is named; empty if none is. md5: Content-MD5.
    """

    values: Mapping[str, str]
    trailing: str
    name: str
    md5: bytes | None


def declared_digests(request: S3Request) -> DeclaredDigests:
    """Parse the digests that a request declares. Raises S3Error: InvalidRequest, InvalidDigest."""
    values = checksums_in_headers(request)
    in_trailer = trailing_checksum(request)
    name = in_trailer or next(iter(values), "")
    named = requested_algorithm(request)
    if (name and named and name != named) or (in_trailer and values and in_trailer not in values):
        raise S3Error("InvalidRequest", "Value for x-amz-sdk-checksum-algorithm header is invalid.")
    return DeclaredDigests(values, in_trailer, name or named, content_md5(request))


def checksums_in_headers(request: S3Request) -> dict[str, str]:
    """Return the checksums in a request's headers: at most one.

    Raises S3Error InvalidRequest: several, or an invalid one.
    """
    found = _in_headers(request)
    for name, value in found.items():
        check_format(name, value)
    return found


def _in_headers(request: S3Request) -> dict[str, str]:
    found = {
        name: request.header(HEADER + name) for name in SIZES if HEADER + name in request.headers
    }
    if len(found) > 1:
        raise S3Error(
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )
    return found


@dataclass(frozen=True, slots=True)
class ObjectChecksum:
    """What a completion says of the object: algorithm, value, type; each may be empty.

    value: of a composite one with or without its number of parts.
    """

    name: str
    value: str
    kind: str


def object_checksum(request: S3Request) -> ObjectChecksum:
    """Return the object's checksum that a CompleteMultipartUpload names.

    Raises S3Error InvalidRequest: several, or an invalid one.
    """
    kind = request.header(TYPE_HEADER).upper()
    if kind not in {"", FULL, COMPOSITE}:
        raise S3Error("InvalidRequest", f"Value for {TYPE_HEADER} header is invalid.")
    values = _in_headers(request)
    if not values:
        return ObjectChecksum("", "", kind)
    [(name, value)] = values.items()
    digest, _, count = value.partition("-")
    check_format(name, digest)
    if count and kind == FULL:
        raise S3Error("InvalidRequest", f"Value for {HEADER}{name} header is invalid.")
    return ObjectChecksum(name, value, COMPOSITE if count else kind)


def trailing_checksum(request: S3Request) -> str:
    """Return the name of the checksum in the trailer, '' without one.

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


def requested_algorithm(request: S3Request) -> str:
    """Return the algorithm that a request names without a value; empty if it names none.

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


def check_format(name: str, value: str) -> None:
    """Refuse a value that is not a digest of this algorithm. Raises S3Error InvalidRequest."""
    try:
        size = len(base64.b64decode(value, validate=True))
    except (Base64Error, ValueError):
        size = -1
    if size != SIZES[name]:
        raise S3Error("InvalidRequest", f"Value for {HEADER}{name} header is invalid.")


def content_md5(request: S3Request) -> bytes | None:
    """Return the Content-MD5 of a request. Raises S3Error InvalidDigest."""
    if "content-md5" not in request.headers:
        return None
    try:
        digest = base64.b64decode(request.header("content-md5"), validate=True)
    except (Base64Error, ValueError):
        raise S3Error("InvalidDigest") from None
    if len(digest) != hashlib.md5(usedforsecurity=False).digest_size:
        raise S3Error("InvalidDigest")
    return digest


def from_digests(name: str, of: BlobManifest | ObjectVersion) -> str:
    """Return a checksum that is known without the bytes; empty for others."""
    if name == "sha256":
        return encode(of.sha256)
    is_known = name == "crc32" and of.crc32 is not None
    return encode((of.crc32 or 0).to_bytes(4, "big")) if is_known else ""


def composite(name: str, parts: Sequence[str]) -> str:
    """Return the checksum of the parts' checksums, as COMPOSITE uploads have it."""
    whole = new_checksum(name)
    for part in parts:
        whole.update(base64.b64decode(part))
    return f"{encode(whole.digest())}-{len(parts)}"


def combined(name: str, parts: Iterable[tuple[str, int]]) -> str:
    """Return the CRC of an object from its parts' CRCs and sizes."""
    combine = COMBINES[name]
    value = 0
    for checksum, size in parts:
        value = combine(value, int.from_bytes(base64.b64decode(checksum), "big"), size)
    return encode(value.to_bytes(SIZES[name], "big"))


def are_wanted(request: S3Request) -> bool:
    """True if the response of a GET or HEAD includes the object's checksums."""
    return request.header(MODE_HEADER).upper() == "ENABLED"


def headers(checksums: Mapping[str, str]) -> list[tuple[str, str]]:
    found = [(HEADER + name, value) for name, value in checksums.items() if name in SIZES]
    if found:
        found.append((HEADER + "type", checksums.get("type", FULL)))
    return found


def of_part(checksums: Mapping[str, str], number: int) -> Mapping[str, str]:
    """Return the stored checksums of one part of an object; empty if unknown."""
    values = checksums.get(PARTS, "").split(",")
    name = next((name for name in checksums if name in SIZES), "")
    if not name or number > len(values) or not values[number - 1]:
        return {}
    return {name: values[number - 1], "type": checksums.get("type", FULL)}


def elements(checksums: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the XML elements for stored checksums (``ChecksumCRC32``, …)."""
    found = [(element(name), value) for name, value in checksums.items() if name in SIZES]
    if found:
        found.append(("ChecksumType", checksums.get("type", FULL)))
    return found


def element(name: str) -> str:
    """Return the XML element's name for an algorithm."""
    return f"Checksum{name.upper()}"
