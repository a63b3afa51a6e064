"""GetObjectAttributes: ETag, checksums, parts and size of an object."""

from typing import Final

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.xml import Node, document
from edgecache.brain.core.values import ObjectVersion
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import STORAGE_CLASS
from edgecache.brain.s3.objects import conditions, version_ids
from edgecache.brain.s3.objects.first_steps import find_object, wanted_version
from edgecache.http.response_head import http_date

ATTRIBUTES: Final = frozenset(("ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"))
MAX_PARTS: Final = 1000


async def get_object_attributes(context: RequestContext) -> S3Response:
    """Return the attributes that the request names.

    Raises S3Error: InvalidArgument, NoSuchKey, PreconditionFailed.
    """
    bucket = await context.bucket()
    wanted = _wanted(context.request)
    named = wanted_version(context, bucket)
    version = await find_object(context, bucket, context.request.key, named)
    conditions.check_read(context.request, version.etag, version.last_modified)
    known: list[Node] = [
        pair for pair in checksums.elements(version.checksums) if "Checksum" in wanted
    ]
    nodes: list[Node | None] = [
        ("ETag", version.etag) if "ETag" in wanted else None,
        ("Checksum", known) if known else None,
        _parts(context.request, version) if "ObjectParts" in wanted and version.parts else None,
        ("StorageClass", STORAGE_CLASS) if "StorageClass" in wanted else None,
        ("ObjectSize", version.size) if "ObjectSize" in wanted else None,
    ]
    headers = [
        ("last-modified", http_date(int(version.last_modified.timestamp()))),
        *version_ids.headers(bucket, version),
    ]
    return S3Response(headers=headers, body=document("GetObjectAttributesResponse", nodes))


def _wanted(request: S3Request) -> set[str]:
    values = ",".join(request.headers.get_all("x-amz-object-attributes")).split(",")
    wanted = {value.strip() for value in values if value.strip()}
    if not wanted or not wanted <= ATTRIBUTES:
        raise S3Error(
            "InvalidArgument",
            "Invalid attribute name specified.",
            extra={"ArgumentName": "x-amz-object-attributes"},
        )
    return wanted


def _parts(request: S3Request, version: ObjectVersion) -> Node:
    marker = _number(request, "x-amz-part-number-marker", 0)
    limit = min(_number(request, "x-amz-max-parts", MAX_PARTS), MAX_PARTS)
    page = list(enumerate(version.parts, 1))[marker : marker + limit]
    nodes: list[Node] = [
        ("PartsCount", len(version.parts)),
        ("PartNumberMarker", marker),
        ("NextPartNumberMarker", page[-1][0] if page else marker),
        ("MaxParts", limit),
        ("IsTruncated", marker + limit < len(version.parts)),
    ]
    for number, size in page:
        known = checksums.elements(checksums.of_part(version.checksums, number))
        shown = [pair for pair in known if pair[0] != "ChecksumType"]
        nodes.append(("Part", [("PartNumber", number), ("Size", size), *shown]))
    return "ObjectParts", nodes


def _number(request: S3Request, name: str, default: int) -> int:
    text = request.header(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise S3Error("InvalidArgument", extra={"ArgumentName": name})
    return int(text)
