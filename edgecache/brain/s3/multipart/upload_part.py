"""UploadPart: the bytes of one part."""

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.s3 import bodies
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.multipart import uploads
from edgecache.brain.s3.objects.selection import part_number


async def upload_part(context: RequestContext) -> S3Response:
    """Store a part.

    Raises S3Error: NoSuchUpload, InvalidArgument, EntityTooLarge, what ``bodies.receive`` raises.
    Raises TooManyParts.
    """
    bucket = await context.writable_bucket()
    request, parts = context.request, context.dependencies
    number = part_number(request)
    upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))
    named = checksums.declared_digests(request).name
    if upload.algorithm and named and named != upload.algorithm:
        raise S3Error(
            "InvalidRequest",
            f"Checksum Type mismatch occurred, expected checksum Type: {upload.algorithm}, "
            f"actual checksum Type: {named}",
        )
    await parts.upload_parts.check_room(bucket.tenant, bodies.body_length(context))
    received = await bodies.receive(context, keep=upload.algorithm or checksums.DEFAULT)
    part = await uploads.write_part(
        parts.database, parts.upload_parts, upload, number, received.body, received.checksums
    )
    name = named or upload.algorithm or checksums.DEFAULT
    checksum = (checksums.HEADER + name, received.checksums[name])
    return S3Response(headers=[("etag", f'"{part.etag}"'), checksum])
