"""PutObject: written to the origin, then to the directory; acknowledged after both."""

from dataclasses import replace

from edgecache.brain.aws import checksums
from edgecache.brain.s3 import bodies, encryption
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.lifecycle import expiry_headers
from edgecache.brain.s3.objects import conditions, headers, version_ids


async def put_object(context: RequestContext) -> S3Response:
    """Store the whole object, or nothing.

    Raises S3Error: NoSuchBucket, AccessDenied, PreconditionFailed, what ``bodies.receive`` raises.
    """
    bucket = await context.writable_bucket()
    encryption.check(context, bucket)
    fields = headers.upload_fields(context.request, bucket)
    wanted = conditions.write_conditions(context.request, bucket)
    # Other origins' drivers send files.
    buffered = await bodies.buffer(context) if bucket.origin_id is None else None
    received = buffered or await bodies.receive(context)
    version = await context.dependencies.objects.put(
        bucket,
        context.request.key,
        received.body,
        replace(fields, checksums=received.checksums),
        conditions=wanted,
    )
    expiry = await expiry_headers(context, bucket, version)
    return S3Response(
        headers=[
            ("etag", f'"{version.etag}"'),
            *version_ids.of_write(version),
            *expiry,
            *checksums.headers(received.checksums),
            *encryption.headers(context, bucket),
        ]
    )
