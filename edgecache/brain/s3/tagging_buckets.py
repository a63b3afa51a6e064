"""GetBucketTagging, PutBucketTagging and DeleteBucketTagging."""

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.s3 import tags
from edgecache.brain.s3.context import RequestContext, S3Response


async def get_bucket_tagging(context: RequestContext) -> S3Response:
    """Return a bucket's tags. Raises S3Error NoSuchTagSet where it has none."""
    bucket = await context.bucket()
    found = await context.dependencies.buckets.tags(bucket.id)
    if not found:
        raise S3Error("NoSuchTagSet", extra={"BucketName": bucket.name})
    return S3Response(body=tags.tagging_document(found))


async def put_bucket_tagging(context: RequestContext) -> S3Response:
    """Replace a bucket's tags. Raises S3Error: MalformedXML, InvalidTag, BadRequest."""
    bucket = await context.writable_bucket()
    wanted = await tags.read_tags(context, limit=tags.OF_BUCKET_LIMIT)
    await context.dependencies.buckets.set_tags(bucket.id, wanted)
    return S3Response(204)


async def delete_bucket_tagging(context: RequestContext) -> S3Response:
    bucket = await context.writable_bucket()
    await context.dependencies.buckets.set_tags(bucket.id, {})
    return S3Response(204)
