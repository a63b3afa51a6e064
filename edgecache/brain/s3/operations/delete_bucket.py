"""DeleteBucket: only when nothing is in it, here or at its origin."""

from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error


async def run(call: Call) -> Answer:
    """Remove the bucket.

    Raises S3Error NoSuchBucket; BucketNotEmpty.
    """
    call.require_write()
    bucket = await call.bucket()
    if bucket.origin_id is not None:
        listing = await call.parts.fills.list(bucket, limit=1)
        if listing.objects:
            raise S3Error("BucketNotEmpty")
    await call.parts.buckets.delete(call.tenant, bucket.id)
    return Answer(204)
