"""DeleteObject and DeleteObjects: deleted at the origin and in every brain before they return."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from edgecache.brain.aws.errors import S3Error, from_brain_error, not_implemented
from edgecache.brain.aws.xml import Element, Node, long_document, parse
from edgecache.brain.core.errors import BrainError, KeyRefused, PreconditionFailed
from edgecache.brain.core.values import VERSION_HEADER, BucketInfo, Deletion, check_key
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.objects import conditions, version_ids
from edgecache.brain.s3.objects.first_steps import wanted_version

LIMIT: Final = 1000
# The conditions of an object in a list, and of one object.
ELEMENTS: Final = ("ETag", "LastModifiedTime", "Size")
HEADERS: Final = ("if-match", *conditions.OF_DELETES)


@dataclass(slots=True)
class Deleted:
    """What became of some deletions.

    markers: the ids of the delete markers that were made, by key. were_markers: the deletions that
    removed a delete marker.
    """

    failed: dict[Deletion, S3Error] = field(default_factory=dict)
    markers: dict[str, str] = field(default_factory=dict)
    were_markers: set[Deletion] = field(default_factory=set)

    def fail(self, deletions: Iterable[Deletion], error: S3Error) -> None:
        self.failed |= dict.fromkeys(deletions, error)


async def delete_object(context: RequestContext) -> S3Response:
    """Delete one object, or one of its versions, if it exists.

    Raises S3Error: PreconditionFailed where a condition does not hold; InvalidArgument for a
    malformed one; NotImplemented for one in a bucket with its own origin.
    """
    bucket = await context.writable_bucket()
    objects, request = context.dependencies.objects, context.request
    named = wanted_version(context, bucket)
    texts = [request.header(name) if name in request.headers else None for name in HEADERS]
    wanted = _deletion(bucket, request.key, named, HEADERS, texts)
    if named is not None:
        differing, found = await objects.delete_versions(bucket, [wanted])
        if differing:
            raise PreconditionFailed
        return _deleted_one(named, is_marker=found.get((request.key, named), False))
    if wanted.has_conditions:
        differing, markers = await objects.delete_matching(bucket, [wanted])
        if differing:
            raise PreconditionFailed
    else:
        markers = await objects.delete(bucket, [request.key])
    return _deleted_one(markers[request.key], is_marker=True) if markers else S3Response(204)


def _deleted_one(version_id: str, *, is_marker: bool) -> S3Response:
    marker = [(version_ids.MARKER_HEADER, "true")] if is_marker else []
    return S3Response(204, [(VERSION_HEADER, version_ids.shown(version_id)), *marker])


async def delete_objects(context: RequestContext) -> S3Response:
    """Delete up to a thousand objects; report each key, with ``Quiet`` the failures only."""
    bucket = await context.writable_bucket()
    root = await parse(await read_xml(context, needs_digest=True), "Delete")
    root.check("Object", "Quiet")
    rows = root.all("Object")
    if not 0 < len(rows) <= LIMIT:
        raise S3Error("MalformedXML")
    errors: list[Node] = []
    wanted: list[Deletion] = []
    for row in rows:
        key = _key(row)
        try:
            wanted.append(_row_deletion(bucket, row, key))
        except S3Error as refusal:
            errors.append(_error(key, row.value("VersionId"), refusal))
    deleted = await _delete(context, bucket, wanted)
    is_quiet = root.value("Quiet").lower() == "true"
    done = [] if is_quiet else [each for each in wanted if each not in deleted.failed]
    nodes: list[Node] = [("Deleted", _lines(each, deleted)) for each in done]
    for each, error in deleted.failed.items():
        shown = "" if each.version_id is None else version_ids.shown(each.version_id)
        errors.append(_error(each.key, shown, error))
    return S3Response(body=await long_document("DeleteResult", [], [*nodes, *errors]))


def _lines(deletion: Deletion, deleted: Deleted) -> list[Node]:
    lines: list[Node] = [("Key", deletion.key)]
    marker = deleted.markers.get(deletion.key)
    if deletion.version_id is not None:
        lines.append(("VersionId", version_ids.shown(deletion.version_id)))
        marker = deletion.version_id if deletion in deleted.were_markers else None
    if marker is not None:
        lines.append(("DeleteMarker", True))
        lines.append(("DeleteMarkerVersionId", version_ids.shown(marker)))
    return lines


def _error(key: str, version: str, error: S3Error) -> Node:
    lines: list[Node | None] = [
        ("Key", key),
        ("VersionId", version) if version else None,
        ("Code", error.code),
        ("Message", error.message),
    ]
    return "Error", lines


def _key(row: Element) -> str:
    row.check("Key", "VersionId", *ELEMENTS, are_texts=True)
    for child in row.children:
        if child.name == "Key":
            return child.text
    raise S3Error("MalformedXML")


def _row_deletion(bucket: BucketInfo, row: Element, key: str) -> Deletion:
    """Return what a row asks for. Raises S3Error, which is the row's own."""
    named = None
    if row.value("VersionId"):
        try:
            named = version_ids.parse(row.value("VersionId"), bucket)
        except S3Error:
            raise S3Error("NoSuchVersion") from None
    try:
        check_key(key)
    except KeyRefused:
        raise S3Error("KeyTooLongError" if key else "InvalidArgument") from None
    texts = [row.value(name) if row.all(name) else None for name in ELEMENTS]
    return _deletion(bucket, key, named, ELEMENTS, texts)


def _deletion(
    bucket: BucketInfo,
    key: str,
    version_id: str | None,
    names: Sequence[str],
    texts: Sequence[str | None],
) -> Deletion:
    """Return a deletion with its conditions: ETag, time and size, None where there is none.

    names: of the conditions. Raises S3Error: InvalidArgument; NotImplemented in a bucket with its
    own origin, as many origins ignore a condition, and delete.
    """
    asked = [name for name, text in zip(names, texts, strict=True) if text is not None]
    if asked and bucket.origin_id is not None:
        raise not_implemented(
            f"A condition of a delete ({', '.join(asked)}) in a bucket with an origin of its own"
        )
    etag, time, size = texts
    return Deletion(
        key,
        version_id,
        None if etag is None else conditions.one_etag(etag),
        None if time is None else conditions.moment(time, names[1]),
        None if size is None else conditions.size_bytes(size, names[2]),
    )


async def _delete(context: RequestContext, bucket: BucketInfo, wanted: list[Deletion]) -> Deleted:
    """Delete objects and versions; return what became of them."""
    objects = context.dependencies.objects
    versions = [each for each in wanted if each.version_id is not None]
    current = [each for each in wanted if each.version_id is None]
    plain = [each for each in current if not each.has_conditions]
    matching = [each for each in current if each.has_conditions]
    deleted = Deleted()
    try:
        if plain:
            deleted.markers |= await objects.delete(bucket, [each.key for each in plain])
    except BrainError as error:
        deleted.fail(plain, from_brain_error(error))
    try:
        if matching:
            differing, markers = await objects.delete_matching(bucket, matching)
            deleted.markers |= markers
            deleted.fail(differing, S3Error("PreconditionFailed"))
    except BrainError as error:
        deleted.fail(matching, from_brain_error(error))
    try:
        if versions:
            differing, found = await objects.delete_versions(bucket, versions)
            deleted.fail(differing, S3Error("PreconditionFailed"))
            deleted.were_markers = {
                each for each in versions if found.get((each.key, each.version_id))
            }
    except BrainError as error:
        deleted.fail(versions, from_brain_error(error))
    return deleted
