"""The tags of an object and of a bucket: get, put and delete them."""

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.values import TAGGING_HEADER
from edgecache.brain.s3 import tags
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.objects.first_steps import find_object, object_key


async def get_object_tagging(context: RequestContext) -> S3Response:
    """Return an object's tags; none for an object of another store. Raises S3Error NoSuchKey."""
    bucket = await context.bucket()
    version = await find_object(context, bucket, object_key(context))
    found = tags.decoded(version.headers.get(TAGGING_HEADER, ""))
    return S3Response(body=tags.tagging_document(found))


async def put_object_tagging(context: RequestContext) -> S3Response:
    """Replace an object's tags.

    Raises S3Error: NoSuchKey, MalformedXML, InvalidTag, BadRequest, NotImplemented.
    """
    context.require_write()
    wanted = await tags.read_tags(context, limit=tags.OF_OBJECT_LIMIT)
    await _replace_object_tags(context, tags.encoded(wanted))
    return S3Response()


async def delete_object_tagging(context: RequestContext) -> S3Response:
    """Remove an object's tags. Raises S3Error: NoSuchKey, NotImplemented."""
    context.require_write()
    await _replace_object_tags(context, "")
    return S3Response(204)


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


async def _replace_object_tags(context: RequestContext, tagging: str) -> None:
    bucket = await context.bucket()
    tags.refuse_external(bucket)
    await context.dependencies.objects.tag(bucket, object_key(context), tagging)
