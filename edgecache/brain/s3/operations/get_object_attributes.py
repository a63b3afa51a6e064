"""GetObjectAttributes: what is known of an object, without its bytes."""

from typing import Final

from edgecache.brain.s3 import checksums, conditions
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.listing import STORAGE_CLASS
from edgecache.brain.s3.reading import check_version, head
from edgecache.brain.s3.requests import S3Request
from edgecache.brain.s3.xml import Node, document
from edgecache.brain.values import Found
from edgecache.http.heads import http_date

ATTRIBUTES: Final = frozenset(("ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"))
MAX_PARTS: Final = 1000


async def run(call: Call) -> Answer:
    """Answer with the attributes that were asked for.

    Raises S3Error: InvalidArgument, NoSuchKey, PreconditionFailed.
    """
    bucket = await call.bucket()
    key = check_version(call)
    asked = _asked(call.request)
    found = await head(call, bucket, key)
    conditions.check_read(call.request, found.etag, found.last_modified)
    known: list[Node] = [
        pair for pair in checksums.elements(found.checksums) if "Checksum" in asked
    ]
    nodes: list[Node | None] = [
        ("ETag", found.etag) if "ETag" in asked else None,
        ("Checksum", known) if known else None,
        _parts(call.request, found) if "ObjectParts" in asked and found.parts else None,
        ("StorageClass", STORAGE_CLASS) if "StorageClass" in asked else None,
        ("ObjectSize", found.size) if "ObjectSize" in asked else None,
    ]
    headers = [("last-modified", http_date(int(found.last_modified.timestamp())))]
    return Answer(headers=headers, body=document("GetObjectAttributesResponse", nodes))


def _asked(request: S3Request) -> set[str]:
    values = ",".join(request.headers.get_all("x-amz-object-attributes")).split(",")
    asked = {value.strip() for value in values if value.strip()}
    if not asked or not asked <= ATTRIBUTES:
        raise S3Error(
            "InvalidArgument",
            "Invalid attribute name specified.",
            extra={"ArgumentName": "x-amz-object-attributes"},
        )
    return asked


def _parts(request: S3Request, found: Found) -> Node:
    marker = _number(request, "x-amz-part-number-marker", 0)
    limit = min(_number(request, "x-amz-max-parts", MAX_PARTS), MAX_PARTS)
    page = list(enumerate(found.parts, 1))[marker : marker + limit]
    nodes: list[Node] = [
        ("PartsCount", len(found.parts)),
        ("PartNumberMarker", marker),
        ("NextPartNumberMarker", page[-1][0] if page else marker),
        ("MaxParts", limit),
        ("IsTruncated", marker + limit < len(found.parts)),
    ]
    for number, size in page:
        nodes.append(("Part", [("PartNumber", number), ("Size", size)]))
    return "ObjectParts", nodes


def _number(request: S3Request, name: str, default: int) -> int:
    text = request.header(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise S3Error("InvalidArgument", extra={"ArgumentName": name})
    return int(text)
