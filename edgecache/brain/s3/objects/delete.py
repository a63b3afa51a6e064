"""DeleteObject and DeleteObjects: deleted at the origin and in every brain before they return."""

from typing import Final

from edgecache.brain.errors import BrainError, KeyRefused
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.errors import S3Error, from_brain_error
from edgecache.brain.s3.objects.conditions import write_conditions
from edgecache.brain.s3.objects.lookup import object_key
from edgecache.brain.s3.xml import Element, Node, long_document, parse
from edgecache.brain.values import BucketInfo, check_key

LIMIT: Final = 1000
CONDITIONS: Final = frozenset(("x-amz-if-match-last-modified-time", "x-amz-if-match-size"))


async def delete_object(context: RequestContext) -> S3Response:
    """Delete one object, if it exists."""
    bucket = await context.writable_bucket()
    key = object_key(context)
    request = context.request
    if write_conditions(request).if_match is not None or not CONDITIONS.isdisjoint(request.headers):
        # Ignoring one would delete a changed object.
        raise S3Error("NotImplemented")
    await context.parts.objects.delete(bucket, [key])
    return S3Response(204)


async def delete_objects(context: RequestContext) -> S3Response:
    """Delete up to a thousand objects; report each key, with ``Quiet`` the failures only."""
    bucket = await context.writable_bucket()
    root = await parse(await read_xml(context, needs_digest=True), "Delete")
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
    for child in row.children:
        if child.name == "Key":
            return child.text
    raise S3Error("MalformedXML")


def _refusal(row: Element, key: str) -> S3Error | None:
    if row.value("VersionId") not in {"", "null"}:
        return S3Error("NoSuchVersion")
    if row.value("ETag") or row.value("LastModifiedTime") or row.value("Size"):
        return S3Error("NotImplemented")
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
        await context.parts.objects.delete(bucket, keys)
    except BrainError as error:
        return dict.fromkeys(keys, from_brain_error(error))
    return {}
