"""AbortMultipartUpload: the upload and its parts are deleted."""

from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.multipart import uploads


async def abort_multipart_upload(context: RequestContext) -> S3Response:
    """Delete the upload. Raises S3Error NoSuchUpload."""
    bucket = await context.writable_bucket()
    request, parts = context.request, context.parts
    upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))
    if not await uploads.remove(parts.database, parts.staging, upload.id):
        raise S3Error("NoSuchUpload")
    return S3Response(204)
