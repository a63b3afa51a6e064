"""What only the request says of an error that comes from below: key, bucket, upload, condition."""

from edgecache.brain.aws.errors import S3Error, from_brain_error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.core.errors import BrainError
from edgecache.brain.s3.objects import conditions


def described(error: BrainError, request: S3Request) -> S3Error:
    """Return the S3 error of an operation, with the elements that AWS adds to it."""
    found = from_brain_error(error)
    elements = {
        "NoSuchBucket": ("BucketName", request.bucket),
        "NoSuchKey": ("Key", request.key),
        "NoSuchUpload": ("UploadId", request.query("uploadId")),
        "PreconditionFailed": ("Condition", conditions.of_write(request)),
    }
    if found.code in elements:
        name, value = elements[found.code]
        found.extra.setdefault(name, value)
    return found
