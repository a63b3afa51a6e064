"""UploadPart."""

from edgecache.brain.s3 import bodies, checksums, object_headers, uploads
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.selection import part_number


async def run(call: Call) -> Answer:
    """Keep a part's bytes.

    Raises S3Error: NoSuchUpload, InvalidArgument, EntityTooLarge, what ``bodies.receive`` raises.
    """
    call.require_write()
    bucket = await call.bucket()
    request, parts = call.request, call.parts
    number = part_number(request)
    object_headers.check_offered(request)
    upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))
    named = checksums.claims_of(request).name
    if upload.algorithm and named and named != upload.algorithm:
        raise S3Error(
            "InvalidRequest",
            f"Checksum Type mismatch occurred, expected checksum Type: {upload.algorithm}, "
            f"actual checksum Type: {named}",
        )
    received = await bodies.receive(call, keep=upload.algorithm or checksums.DEFAULT)
    part = await uploads.write_part(
        parts.database, parts.staging, upload, number, received.staged, received.checksums
    )
    returned = {
        name: value
        for name, value in received.checksums.items()
        if name == (named or upload.algorithm or checksums.DEFAULT)
    }
    headers = [(checksums.HEADER + name, value) for name, value in returned.items()]
    return Answer(headers=[("etag", f'"{part.etag}"'), *headers])
