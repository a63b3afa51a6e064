"""DeleteObject and DeleteObjects: deleted at the origin and in every brain before they return."""

from typing import Final

from edgecache.brain.aws.errors import S3Error, from_brain_error, not_implemented
from edgecache.brain.aws.xml import Element, Node, long_document, parse
from edgecache.brain.core.errors import BrainError, KeyRefused, PreconditionFailed
from edgecache.brain.core.values import BucketInfo, check_key
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.objects import conditions
from edgecache.brain.s3.objects.first_steps import object_key

LIMIT: Final = 1000
# Conditions of AWS's directory buckets.
OF_DIRECTORY_BUCKETS: Final = ("LastModifiedTime", "Size")
# A key, and the ETag that must be there: ``*`` for any, None for no condition.
Deletion = tuple[str, str | None]


async def delete_object(context: RequestContext) -> S3Response:
    """Delete one object, if it exists.

    Raises S3Error: PreconditionFailed where the object of If-Match is absent or another one;
    NotImplemented for a condition in a bucket with its own origin.
    """
    bucket = await context.writable_bucket()
    key = object_key(context)
    if_match = conditions.write_conditions(context.request).if_match
    if if_match is None:
        await context.dependencies.objects.delete(bucket, [key])
        return S3Response(204)
    _refuse_external(bucket)
    if await context.dependencies.objects.delete_matching(bucket, [(key, if_match)]):
        raise PreconditionFailed
    return S3Response(204)


async def delete_objects(context: RequestContext) -> S3Response:
    """Delete up to a thousand objects; report each key, with ``Quiet`` the failures only."""
    bucket = await context.writable_bucket()
    root = await parse(await read_xml(context, needs_digest=True), "Delete")
    root.check("Object", "Quiet")
    rows = root.all("Object")
    if not 0 < len(rows) <= LIMIT:
        raise S3Error("MalformedXML")
    refused: dict[str, S3Error] = {}
    wanted: list[Deletion] = []
    for row in rows:
        key = _key(row)
        try:
            wanted.append(_deletion(bucket, row, key))
        except S3Error as refusal:
            refused[key] = refusal
    failed = await _delete(context, bucket, wanted)
    is_quiet = root.value("Quiet").lower() == "true"
    deleted = [] if is_quiet else [key for key, etag in wanted if (key, etag) not in failed]
    nodes: list[Node] = [("Deleted", [("Key", key)]) for key in deleted]
    errors = [*refused.items(), *((key, error) for (key, _), error in failed.items())]
    for key, error in errors:
        lines: list[Node] = [("Key", key), ("Code", error.code), ("Message", error.message)]
        nodes.append(("Error", lines))
    return S3Response(body=await long_document("DeleteResult", [], nodes))


def _key(row: Element) -> str:
    row.check("Key", "VersionId", "ETag", *OF_DIRECTORY_BUCKETS, are_texts=True)
    for child in row.children:
        if child.name == "Key":
            return child.text
    raise S3Error("MalformedXML")


def _deletion(bucket: BucketInfo, row: Element, key: str) -> Deletion:
    """Return what a row asks for. Raises S3Error, which is the row's own."""
    if row.value("VersionId") not in {"", "null"}:
        raise S3Error("NoSuchVersion")
    for name in OF_DIRECTORY_BUCKETS:
        if row.all(name):
            # Ignoring it would delete a changed object.
            raise not_implemented(f"The condition {name} of a delete")
    try:
        check_key(key)
    except KeyRefused:
        raise S3Error("KeyTooLongError" if key else "InvalidArgument") from None
    if not row.all("ETag"):
        return key, None
    _refuse_external(bucket)
    return key, conditions.one_etag(row.value("ETag"))


def _refuse_external(bucket: BucketInfo) -> None:
    """Refuse a condition in a bucket with its own origin: many origins ignore it, and delete.

    Raises S3Error NotImplemented.
    """
    if bucket.origin_id is not None:
        raise not_implemented("A condition of a delete in a bucket with an origin of its own")


async def _delete(
    context: RequestContext, bucket: BucketInfo, wanted: list[Deletion]
) -> dict[Deletion, S3Error]:
    """Delete objects; return those that were not deleted, with their errors."""
    objects = context.dependencies.objects
    plain = [key for key, if_match in wanted if if_match is None]
    matching = [(key, if_match) for key, if_match in wanted if if_match is not None]
    failed: dict[Deletion, S3Error] = {}
    try:
        if plain:
            await objects.delete(bucket, plain)
    except BrainError as error:
        failed |= dict.fromkeys(((key, None) for key in plain), from_brain_error(error))
    try:
        if matching:
            differing = await objects.delete_matching(bucket, matching)
            failed |= dict.fromkeys(differing, S3Error("PreconditionFailed"))
    except BrainError as error:
        failed |= dict.fromkeys(matching, from_brain_error(error))
    return failed
