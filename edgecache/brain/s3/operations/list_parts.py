"""ListParts: what came of an upload."""

from typing import Final

from edgecache.brain.s3 import checksums, uploads
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.listing import STORAGE_CLASS, iso, owner_id
from edgecache.brain.s3.uploads import Part
from edgecache.brain.s3.xml import Node, document

LIMIT: Final = 1000


async def run(call: Call) -> Answer:
    """Answer with a page of parts.

    Raises S3Error NoSuchUpload.
    """
    call.require_write()
    bucket = await call.bucket()
    request, parts = call.request, call.parts
    upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))
    marker = request.integer("part-number-marker", 0, maximum=2**31 - 1)
    limit = request.integer("max-parts", LIMIT, maximum=LIMIT)
    found = await uploads.parts(parts.database, upload.id, after=marker, limit=limit + 1)
    page = found[:limit]
    owner: list[Node] = [("ID", owner_id(call.tenant))]
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
        ("IsTruncated", len(found) > limit > 0),
        ("ChecksumAlgorithm", upload.algorithm.upper()) if upload.algorithm else None,
        ("ChecksumType", upload.kind) if upload.kind else None,
        *(_part(part) for part in page),
    ]
    return Answer(body=document("ListPartsResult", nodes))


def _part(part: Part) -> Node:
    known = [(checksums.element(n), v) for n, v in part.checksums.items() if n in checksums.SIZES]
    return "Part", [
        ("PartNumber", part.number),
        ("LastModified", iso(part.created_at)),
        ("ETag", f'"{part.etag}"'),
        ("Size", part.size),
        *known,
    ]
