"""UploadPartCopy: a part out of an object that is there already."""

import re
from typing import Final

from edgecache.brain.delivery.delivery import Span
from edgecache.brain.s3 import bodies, checksums, uploads
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.copying import source_of
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.listing import iso
from edgecache.brain.s3.selection import part_number
from edgecache.brain.s3.xml import Node, document

_RANGE: Final = re.compile(r"bytes=([0-9]{1,19})-([0-9]{1,19})", re.ASCII)


async def run(call: Call) -> Answer:
    """Keep bytes of the source as a part.

    Raises S3Error: NoSuchUpload, NoSuchKey, PreconditionFailed, InvalidArgument, EntityTooLarge.
    """
    call.require_write()
    bucket = await call.bucket()
    request, parts = call.request, call.parts
    number = part_number(request)
    upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))
    source = await source_of(call)
    opened = await parts.fills.open(source.bucket, source.key)
    found = opened.found if opened.found.size >= 0 else await opened.whole()
    if found.etag != source.found.etag:
        raise S3Error("ConditionalRequestConflict")
    span = _span(request.header("x-amz-copy-source-range"), found.size)
    reckoning = bodies.Reckoning(upload.algorithm or checksums.DEFAULT)
    receiver = parts.staging.receive()
    try:
        async for piece in opened.body(span):
            reckoning.update(piece)
            await receiver.write(piece)
        staged = await receiver.finish()
    except BaseException:
        await receiver.discard()
        raise
    reckoned = reckoning.of(staged.manifest)
    part = await uploads.write_part(parts.database, parts.staging, upload, number, staged, reckoned)
    nodes: list[Node] = [
        ("LastModified", iso(part.created_at)),
        ("ETag", f'"{part.etag}"'),
        *((checksums.element(name), value) for name, value in reckoned.items()),
    ]
    return Answer(body=document("CopyPartResult", nodes))


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
