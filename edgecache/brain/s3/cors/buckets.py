"""GetBucketCors, PutBucketCors and DeleteBucketCors."""

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.cors import rules


async def get_bucket_cors(context: RequestContext) -> S3Response:
    """Return a bucket's rules. Raises S3Error NoSuchCORSConfiguration where it has none."""
    bucket = await context.bucket()
    found = await context.dependencies.buckets.cors(bucket.id)
    if not found:
        raise S3Error("NoSuchCORSConfiguration", extra={"BucketName": bucket.name})
    return S3Response(body=rules.rules_document(rules.loaded(found)))


async def put_bucket_cors(context: RequestContext) -> S3Response:
    """Replace a bucket's rules; every brain follows the new ones when this returns.

    Raises S3Error: MalformedXML, InvalidRequest, MaxMessageLengthExceeded.
    """
    bucket = await context.writable_bucket()
    wanted = await rules.parse_rules(await read_xml(context))
    await context.dependencies.buckets.set_cors(bucket.id, rules.stored(wanted))
    return S3Response()


async def delete_bucket_cors(context: RequestContext) -> S3Response:
    bucket = await context.writable_bucket()
    await context.dependencies.buckets.set_cors(bucket.id, [])
    return S3Response(204)
