"""ListBuckets, CreateBucket, HeadBucket, GetBucketLocation and DeleteBucket."""

from typing import Final

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.xml import Node, document, parse
from edgecache.brain.core.errors import BucketExists
from edgecache.brain.core.values import OBJECT_HEADERS, is_bucket_name
from edgecache.brain.s3 import tags
from edgecache.brain.s3.bodies import body_length, read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import decode_token, encode_token, iso, owner_id
from edgecache.brain.s3.objects.headers import check_settings

# Each client takes it for where buckets are; they are everywhere.
REGION: Final = "us-east-1"
PAGE_LIMIT: Final = 10_000
# Values of an object's headers that browsers and SDKs send with other requests, too.
_OF_ANY_REQUEST: Final = {
    "cache-control": ("max-age=0", "no-cache", "no-store"),
    "content-encoding": ("aws-chunked",),
}
BUCKETS: Final = (
    "SELECT name, created_at FROM brain_bucket WHERE organization_id = %s AND environment_pk = %s"
    ' AND name COLLATE "C" > %s AND starts_with(name, %s) ORDER BY name COLLATE "C" LIMIT %s'
)


async def list_buckets(context: RequestContext) -> S3Response:
    """Return a page of the environment's buckets, all of them unless the caller wants less."""
    tenant, request = context.tenant, context.request
    context.check_owner(tenant)
    limit = request.integer("max-buckets", PAGE_LIMIT, maximum=PAGE_LIMIT)
    if limit == 0:
        raise S3Error("InvalidArgument", "Argument max-buckets must be from 1 to 10000.")
    token = request.query("continuation-token")
    after = decode_token(token) if token else ""
    prefix = request.query("prefix")
    is_here = request.query("bucket-region", REGION) == REGION
    values = [*tenant, after, prefix, limit + 1]
    rows = await context.dependencies.database.all(BUCKETS, values) if is_here else []
    page = rows[:limit]
    buckets: list[Node] = [
        ("Bucket", [("Name", row.name), ("CreationDate", iso(row.created_at))]) for row in page
    ]
    nodes: list[Node | None] = [
        ("Owner", [("ID", owner_id(tenant))]),
        ("Buckets", buckets),
        ("Prefix", prefix) if prefix else None,
        ("ContinuationToken", encode_token(page[-1].name)) if len(rows) > limit else None,
    ]
    return S3Response(body=document("ListAllMyBucketsResult", nodes))


async def create_bucket(context: RequestContext) -> S3Response:
    """Create a bucket with the built-in origin; other origins are configured on the platform.

    Raises S3Error: InvalidBucketName, BucketAlreadyOwnedByYou, TooManyBuckets, MalformedXML.
    """
    context.require_write()
    request = context.request
    context.check_owner(context.tenant)
    _refuse_object_headers(request)
    check_settings(request, is_public=False)
    wanted = await _tags(context) if body_length(context) else {}
    if not is_bucket_name(request.bucket):
        raise S3Error("InvalidBucketName", extra={"BucketName": request.bucket[:255]})
    try:
        await context.dependencies.buckets.create(context.tenant, request.bucket, tags=wanted)
    except BucketExists:
        raise S3Error("BucketAlreadyOwnedByYou", extra={"BucketName": request.bucket}) from None
    return S3Response(headers=[("location", f"/{request.bucket}")])


def _refuse_object_headers(request: S3Request) -> None:
    """Refuse headers of an upload, whose key has been lost on the way. Raises S3Error."""
    for name in OBJECT_HEADERS:
        if request.header(name) not in {"", *_OF_ANY_REQUEST.get(name, ())}:
            raise not_implemented(f"The header {name} of CreateBucket")


async def _tags(context: RequestContext) -> dict[str, str]:
    """Return the tags in the body of CreateBucket.

    Raises S3Error: MalformedXML, InvalidTag, BadRequest.
    """
    root = await parse(await read_xml(context), "CreateBucketConfiguration")
    # The region that it names makes no difference.
    root.check("LocationConstraint", "Tags")
    tag_sets = root.all("Tags")
    if len(tag_sets) > 1:
        raise S3Error("MalformedXML")
    return tags.tags_of(tag_sets[0], limit=tags.OF_BUCKET_LIMIT) if tag_sets else {}


async def head_bucket(context: RequestContext) -> S3Response:
    """Return 200 for a bucket of the caller's environment."""
    await context.bucket()
    return S3Response(headers=[("x-amz-bucket-region", REGION)])


async def get_bucket_location(context: RequestContext) -> S3Response:
    """Return the empty location, which AWS gives for REGION."""
    await context.bucket()
    return S3Response(body=document("LocationConstraint", []))


async def delete_bucket(context: RequestContext) -> S3Response:
    """Delete a bucket that is empty here and at its origin.

    Raises S3Error NoSuchBucket; BucketNotEmpty.
    """
    bucket = await context.writable_bucket()
    if bucket.origin_id is not None:
        listing = await context.dependencies.objects.list(bucket, limit=1)
        if listing.objects:
            raise S3Error("BucketNotEmpty")
    await context.dependencies.buckets.delete(context.tenant, bucket.id)
    return S3Response(204)
