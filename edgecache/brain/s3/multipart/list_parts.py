"""ListParts: the parts of an unfinished upload."""

from typing import Final

from edgecache.brain.aws import checksums
from edgecache.brain.aws.xml import Node, long_document
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import STORAGE_CLASS, iso, owner_id
from edgecache.brain.s3.multipart import uploads
from edgecache.brain.s3.multipart.uploads import Part

LIMIT: Final = 1000


async def list_parts(context: RequestContext) -> S3Response:
    """Return a page of parts. Raises S3Error NoSuchUpload."""
    bucket = await context.writable_bucket()
    request, parts = context.request, context.dependencies
    upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))
    marker = request.integer("part-number-marker", 0, maximum=2**31 - 1)
    limit = request.integer("max-parts", LIMIT, maximum=LIMIT)
    rows = await uploads.parts(parts.database, upload.id, after=marker, limit=limit + 1)
    page = rows[:limit]
    owner: list[Node] = [("ID", owner_id(context.tenant))]
    nodes: list[Node | None] = [
        ("Bucket", request.bucket),
        ("Key", request.key),
        ("UploadId", upload.id),
        ("Initiator", owner),
        ("Owner", owner),
        ("StorageClass", STORAGE_CLASS),
        ("PartNumberMarker", marker),
        ("NextPartNumberMarker", page[-1].number if page else 0),
        ("MaxParts", limit),
        ("IsTruncated", len(rows) > limit > 0),
        ("ChecksumAlgorithm", upload.algorithm.upper()) if upload.algorithm else None,
        ("ChecksumType", upload.checksum_type) if upload.checksum_type else None,
    ]
    elements = (_part(part) for part in page)
    return S3Response(body=await long_document("ListPartsResult", nodes, elements))


def _part(part: Part) -> Node:
    values = [(checksums.element(n), v) for n, v in part.checksums.items() if n in checksums.SIZES]
    return "Part", [
        ("PartNumber", part.number),
        ("LastModified", iso(part.created_at)),
        ("ETag", f'"{part.etag}"'),
        ("Size", part.size),
        *values,
    ]
