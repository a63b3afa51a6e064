"""UploadPartCopy: a part made of an existing object's bytes."""

import re
from typing import Final

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.xml import Node, document
from edgecache.brain.core.values import StagedFile
from edgecache.brain.delivery.plan import Span
from edgecache.brain.s3 import bodies
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import iso
from edgecache.brain.s3.multipart import uploads
from edgecache.brain.s3.objects import conditions
from edgecache.brain.s3.objects.copy import CopySource, copied
from edgecache.brain.s3.objects.selection import part_number

_RANGE: Final = re.compile(r"bytes=([0-9]{1,19})-([0-9]{1,19})", re.ASCII)


async def upload_part_copy(context: RequestContext) -> S3Response:
    """Store bytes of the source as a part.

    Raises S3Error: NoSuchUpload, NoSuchKey, PreconditionFailed, InvalidArgument, EntityTooLarge.
    """
    bucket = await context.writable_bucket()
    request, parts = context.request, context.dependencies
    number = part_number(request)
    upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))

    async def received(source: CopySource) -> tuple[StagedFile, dict[str, str]]:
        opened = await parts.objects.open(source.bucket, source.key)
        found = opened.version if opened.version.size >= 0 else await opened.whole()
        conditions.check_copy(request, found.etag, found.last_modified)
        span = _span(request.header("x-amz-copy-source-range"), found.size)
        running = bodies.BodyChecksums(upload.algorithm or checksums.DEFAULT)
        staged = await parts.staging.take(running.over(opened.body(span)))
        return staged, running.values(staged.manifest)

    staged, computed = await copied(context, received)
    part = await uploads.write_part(
        parts.database, parts.upload_parts, upload, number, staged, computed
    )
    nodes: list[Node] = [
        ("LastModified", iso(part.created_at)),
        ("ETag", f'"{part.etag}"'),
        *((checksums.element(name), value) for name, value in computed.items()),
    ]
    return S3Response(body=document("CopyPartResult", nodes))


def _span(text: str, size: int) -> Span:
    if not text:
        span = Span(0, size)
    else:
        match = _RANGE.fullmatch(text)
        if match is None or int(match[2]) < int(match[1]):
            raise S3Error(
                "InvalidArgument",
                "The x-amz-copy-source-range value must be of the form bytes=first-last where "
                "first and last are the zero-based offsets of the first and last bytes to copy",
            )
        if int(match[2]) >= size:
            raise S3Error(
                "InvalidArgument",
                f"Range specified is not valid for source object of size: {size}",
            )
        span = Span(int(match[1]), int(match[2]) - int(match[1]) + 1)
    if span.length > bodies.UPLOAD_LIMIT_BYTES:
        raise S3Error("EntityTooLarge")
    return span
