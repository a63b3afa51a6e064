"""AbortMultipartUpload: the upload and its parts are gone."""

from edgecache.brain.s3 import uploads
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error


async def run(call: Call) -> Answer:
    """Forget the upload.

    Raises S3Error NoSuchUpload.
    """
    call.require_write()
    bucket = await call.bucket()
    request, parts = call.request, call.parts
    upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))
    if not await uploads.remove(parts.database, parts.staging, upload.id):
        raise S3Error("NoSuchUpload")
    return Answer(204)
