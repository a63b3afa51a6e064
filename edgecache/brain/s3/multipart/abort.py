"""AbortMultipartUpload: the upload and its parts are deleted."""

from edgecache.brain.objects import upload_rows
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.multipart import uploads


async def abort_multipart_upload(context: RequestContext) -> S3Response:
    """Delete the upload. Raises S3Error NoSuchUpload, UploadMissing, UploadBusy."""
    bucket = await context.writable_bucket()
    request, parts = context.request, context.dependencies
    upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))
    await upload_rows.remove(parts.database, parts.staging, upload.id)
    return S3Response(204)
