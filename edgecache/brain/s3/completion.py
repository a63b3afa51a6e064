"""What a CompleteMultipartUpload lists, against the parts that came."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from edgecache.brain.s3 import checksums
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.requests import S3Request
from edgecache.brain.s3.selection import PART_LIMIT
from edgecache.brain.s3.uploads import Part, Upload
from edgecache.brain.s3.xml import Element, parse

LEAST_BYTES: Final = 5 * 2**20
OBJECT_LIMIT_BYTES: Final = 5 * 2**40


@dataclass(frozen=True, slots=True)
class Named:
    """A part as the client lists it."""

    number: int
    etag: str
    checksums: Mapping[str, str]


def listed(body: bytes) -> list[Named]:
    """Read the client's list.

    Raises S3Error: MalformedXML, InvalidPartOrder.
    """
    rows = parse(body, "CompleteMultipartUpload").all("Part")
    if not 0 < len(rows) <= PART_LIMIT:
        raise S3Error("MalformedXML")
    found = [_named(row) for row in rows]
    numbers = [each.number for each in found]
    if numbers != sorted(set(numbers)):
        raise S3Error("InvalidPartOrder")
    return found


def chosen(named: Sequence[Named], parts: Sequence[Part]) -> list[Part]:
    """Give the parts that the list names.

    Raises S3Error: InvalidPart, EntityTooSmall, EntityTooLarge.
    """
    by_number = {part.number: part for part in parts}
    found = []
    for each in named:
        part = by_number.get(each.number)
        if part is None or part.etag != each.etag or not _agrees(each, part):
            raise S3Error(
                "InvalidPart", extra={"PartNumber": str(each.number), "ETag": each.etag[:100]}
            )
        found.append(part)
    for part in found[:-1]:
        if part.size < LEAST_BYTES:
            raise S3Error(
                "EntityTooSmall",
                extra={
                    "ProposedSize": str(part.size),
                    "MinSizeAllowed": str(LEAST_BYTES),
                    "PartNumber": str(part.number),
                    "ETag": part.etag,
                },
            )
    if sum(part.size for part in found) > OBJECT_LIMIT_BYTES:
        raise S3Error("EntityTooLarge")
    return found


def etag_of(etags: Sequence[str]) -> str:
    """Give the ETag of an object made of parts: the MD5 of their MD5s, and their number.

    Raises S3Error InvalidPart: one that is no MD5.
    """
    try:
        joined = b"".join(bytes.fromhex(etag) for etag in etags)
    except ValueError:
        raise S3Error("InvalidPart") from None
    return f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(etags)}"


def checksums_of(upload: Upload, parts: Sequence[Part], request: S3Request) -> dict[str, str]:
    """Give the object's checksum out of its parts', checked against what the client claims.

    Raises S3Error BadDigest.
    """
    name = upload.algorithm or checksums.DEFAULT
    values = [part.checksums.get(name, "") for part in parts]
    if not all(values):
        return {}
    if upload.kind == checksums.COMPOSITE:
        value = checksums.composite(name, values)
    else:
        value = checksums.joined(
            name, [(text, part.size) for text, part in zip(values, parts, strict=True)]
        )
    claimed = request.header(checksums.HEADER + name)
    if claimed and claimed.partition("-")[0] != value.partition("-")[0]:
        raise S3Error("BadDigest", f"The {name.upper()} you specified did not match.")
    return {name: value, "type": upload.kind or checksums.FULL}


def _named(row: Element) -> Named:
    number = row.value("PartNumber")
    etag = row.value("ETag").strip('"')
    if not (number.isascii() and number.isdigit() and len(number) <= 5) or not etag:
        raise S3Error("MalformedXML")
    if not 1 <= int(number) <= PART_LIMIT:
        raise S3Error("InvalidArgument", "PartNumber must be >= 1 and <= 10000")
    given = {name: row.value(checksums.element(name)) for name in checksums.SIZES}
    return Named(int(number), etag, {name: value for name, value in given.items() if value})


def _agrees(named: Named, part: Part) -> bool:
    return all(part.checksums.get(name) == value for name, value in named.checksums.items())
