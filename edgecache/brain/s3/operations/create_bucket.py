"""CreateBucket: with the built-in origin; others are configured on the platform."""

from typing import Final

from edgecache.brain.errors import BucketExists
from edgecache.brain.s3 import object_headers
from edgecache.brain.s3.bodies import body_length, read_xml
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.requests import is_bucket_name
from edgecache.brain.s3.xml import parse

LIMIT: Final = 1000


async def run(call: Call) -> Answer:
    """Make a bucket in the caller's environment; where it is to lie is of no consequence.

    Raises S3Error: InvalidBucketName, BucketAlreadyOwnedByYou, TooManyBuckets, MalformedXML.
    """
    call.require_write()
    request = call.request
    object_headers.check_offered(request)
    if request.header("x-amz-bucket-object-lock-enabled").lower() == "true":
        raise S3Error("NotImplemented")
    if body_length(call):
        parse(await read_xml(call), "CreateBucketConfiguration")
    if not is_bucket_name(request.bucket):
        raise S3Error("InvalidBucketName", extra={"BucketName": request.bucket[:255]})
    if len(await call.parts.buckets.list(call.tenant)) >= LIMIT:
        raise S3Error("TooManyBuckets")
    try:
        await call.parts.buckets.create(call.tenant, request.bucket)
    except BucketExists:
        raise S3Error("BucketAlreadyOwnedByYou", extra={"BucketName": request.bucket}) from None
    return Answer(headers=[("location", f"/{request.bucket}")])
