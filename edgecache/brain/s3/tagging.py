"""The tags of an object and of a bucket: get, put and delete them."""

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.errors import OriginMissing
from edgecache.brain.core.values import TAGGING_HEADER, DeleteMarker
from edgecache.brain.s3 import tags
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.objects import version_ids
from edgecache.brain.s3.objects.first_steps import find_object, no_such_key, wanted_version


async def get_object_tagging(context: RequestContext) -> S3Response:
    """Return an object's tags; none for an object of another store. Raises S3Error NoSuchKey."""
    bucket = await context.bucket()
    named = wanted_version(context, bucket)
    version = await find_object(context, bucket, context.request.key, named)
    found = tags.decoded(version.headers.get(TAGGING_HEADER, ""))
    headers = version_ids.headers(bucket, version)
    return S3Response(headers=headers, body=tags.tagging_document(found))


async def put_object_tagging(context: RequestContext) -> S3Response:
    """Replace an object's tags.

    Raises S3Error: NoSuchKey, MalformedXML, InvalidTag, BadRequest, NotImplemented.
    """
    context.require_write()
    wanted = await tags.read_tags(context, limit=tags.OF_OBJECT_LIMIT)
    return S3Response(headers=await _replace_object_tags(context, tags.encoded(wanted)))


async def delete_object_tagging(context: RequestContext) -> S3Response:
    """Remove an object's tags. Raises S3Error: NoSuchKey, NotImplemented."""
    context.require_write()
    return S3Response(204, await _replace_object_tags(context, ""))


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


async def _replace_object_tags(context: RequestContext, tagging: str) -> list[tuple[str, str]]:
    """Replace the tags of the version that the request names; return the header of its id."""
    bucket = await context.bucket()
    tags.refuse_external(bucket)
    objects, key = context.dependencies.objects, context.request.key
    named = wanted_version(context, bucket)
    if named is None:
        try:
            found = await objects.tag(bucket, key, tagging)
        except OriginMissing:
            raise await no_such_key(context, bucket, key) from None
        return version_ids.headers(bucket, found)
    tagged = await objects.tag_version(bucket, key, tagging, named)
    if tagged is None:
        raise version_ids.no_such_version(key, named)
    if isinstance(tagged, DeleteMarker):
        raise version_ids.marker_refused(context.request.method, tagged)
    return version_ids.headers(bucket, tagged)
