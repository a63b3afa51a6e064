"""PutObject: the body to its origin, then into the directory; acknowledged after both."""

from dataclasses import replace

from edgecache.brain.errors import OriginMissing
from edgecache.brain.s3 import bodies, checksums, conditions, object_headers
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error


async def run(call: Call) -> Answer:
    """Store the object whole, or nothing.

    Raises S3Error: NoSuchBucket, AccessDenied, PreconditionFailed, what ``bodies.receive`` raises.
    """
    call.require_write()
    bucket = await call.bucket()
    fields = object_headers.fields_of(call.request)
    wanted = conditions.of_write(call.request)
    received = await bodies.receive(call)
    try:
        found = await call.parts.fills.put(
            bucket,
            call.request.key,
            received.staged,
            replace(fields, checksums=received.checksums),
            conditions=wanted,
        )
    except OriginMissing:
        raise S3Error("NoSuchKey", extra={"Key": call.request.key}) from None
    return Answer(headers=[("etag", f'"{found.etag}"'), *checksums.headers(received.checksums)])
