"""DeleteObject and DeleteObjects: deleted at the origin and in every brain before they return."""

from typing import Final

from edgecache.brain.aws.errors import S3Error, from_brain_error, not_implemented
from edgecache.brain.aws.xml import Element, Node, long_document, parse
from edgecache.brain.core.errors import BrainError, KeyRefused
from edgecache.brain.core.values import BucketInfo, check_key
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.objects.first_steps import object_key

LIMIT: Final = 1000
CONDITIONS: Final = ("ETag", "LastModifiedTime", "Size")


async def delete_object(context: RequestContext) -> S3Response:
    """Delete one object, if it exists."""
    bucket = await context.writable_bucket()
    key = object_key(context)
    await context.dependencies.objects.delete(bucket, [key])
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
    keys: list[str] = []
    for row in rows:
        key = _key(row)
        refusal = _refusal(row, key)
        if refusal is None:
            keys.append(key)
        else:
            refused[key] = refusal
    refused |= await _delete(context, bucket, keys)
    is_quiet = root.value("Quiet").lower() == "true"
    deleted = [] if is_quiet else [key for key in keys if key not in refused]
    nodes: list[Node] = [("Deleted", [("Key", key)]) for key in deleted]
    for key, error in refused.items():
        lines: list[Node] = [("Key", key), ("Code", error.code), ("Message", error.message)]
        nodes.append(("Error", lines))
    return S3Response(body=await long_document("DeleteResult", [], nodes))


def _key(row: Element) -> str:
    row.check("Key", "VersionId", *CONDITIONS, are_texts=True)
    for child in row.children:
        if child.name == "Key":
            return child.text
    raise S3Error("MalformedXML")


def _refusal(row: Element, key: str) -> S3Error | None:
    if row.value("VersionId") not in {"", "null"}:
        return S3Error("NoSuchVersion")
    for name in CONDITIONS:
        if row.all(name):
            # Ignoring it would delete a changed object.
            return not_implemented(f"The condition {name} of a delete")
    try:
        check_key(key)
    except KeyRefused:
        return S3Error("KeyTooLongError" if key else "InvalidArgument")
    return None


async def _delete(
    context: RequestContext, bucket: BucketInfo, keys: list[str]
) -> dict[str, S3Error]:
    if not keys:
        return {}
    try:
        await context.dependencies.objects.delete(bucket, keys)
    except BrainError as error:
        return dict.fromkeys(keys, from_brain_error(error))
    return {}
