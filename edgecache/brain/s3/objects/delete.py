"""DeleteObject and DeleteObjects: deleted at the origin and in every brain before they return."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from edgecache.brain.aws.errors import S3Error, from_brain_error, not_implemented
from edgecache.brain.aws.xml import Element, Node, long_document, parse
from edgecache.brain.core.errors import BrainError, KeyRefused, PreconditionFailed
from edgecache.brain.core.values import VERSION_HEADER, BucketInfo, check_key
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.objects import conditions, version_ids
from edgecache.brain.s3.objects.first_steps import wanted_version

LIMIT: Final = 1000
# Conditions of AWS's directory buckets.
OF_DIRECTORY_BUCKETS: Final = ("LastModifiedTime", "Size")


class Deletion(NamedTuple):
    """What a row asks for.

    etag: the one that must be there, ``*`` for any, None for no condition. version_id: of the only
    version that is deleted; None for the object.
    """

    key: str
    etag: str | None = None
    version_id: str | None = None


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

    Raises S3Error: PreconditionFailed where the object of If-Match is absent or another one;
    NotImplemented for a condition in a bucket with its own origin, or on a version.
    """
    bucket = await context.writable_bucket()
    objects, key = context.dependencies.objects, context.request.key
    if_match = conditions.write_conditions(context.request, bucket).if_match
    named = wanted_version(context, bucket)
    if named is not None:
        _refuse_condition_of_version(if_match)
        found = await objects.delete_versions(bucket, [(key, named)])
        return _deleted_one(named, is_marker=found.get((key, named), False))
    if if_match is None:
        markers = await objects.delete(bucket, [key])
    else:
        _refuse_external(bucket)
        differing, markers = await objects.delete_matching(bucket, [(key, if_match)])
        if differing:
            raise PreconditionFailed
    return _deleted_one(markers[key], is_marker=True) if markers else S3Response(204)


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
            wanted.append(_deletion(bucket, row, key))
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
    row.check("Key", "VersionId", "ETag", *OF_DIRECTORY_BUCKETS, are_texts=True)
    for child in row.children:
        if child.name == "Key":
            return child.text
    raise S3Error("MalformedXML")


def _deletion(bucket: BucketInfo, row: Element, key: str) -> Deletion:
    """Return what a row asks for. Raises S3Error, which is the row's own."""
    named = None
    if row.value("VersionId"):
        try:
            named = version_ids.parse(row.value("VersionId"), bucket)
        except S3Error:
            raise S3Error("NoSuchVersion") from None
    for name in OF_DIRECTORY_BUCKETS:
        if row.all(name):
            # Ignoring it would delete a changed object.
            raise not_implemented(f"The condition {name} of a delete")
    try:
        check_key(key)
    except KeyRefused:
        raise S3Error("KeyTooLongError" if key else "InvalidArgument") from None
    if not row.all("ETag"):
        return Deletion(key, version_id=named)
    etag = conditions.one_etag(row.value("ETag"))
    if named is not None:
        _refuse_condition_of_version(etag)
    _refuse_external(bucket)
    return Deletion(key, etag)


def _refuse_external(bucket: BucketInfo) -> None:
    """Refuse a condition in a bucket with its own origin: many origins ignore it, and delete.

    Raises S3Error NotImplemented.
    """
    if bucket.origin_id is not None:
        raise not_implemented("A condition of a delete in a bucket with an origin of its own")


def _refuse_condition_of_version(if_match: str | None) -> None:
    """Refuse a condition on one version, which has its ETag for ever. Raises S3Error."""
    if if_match is not None:
        raise not_implemented("A condition of a delete with a version id")


async def _delete(context: RequestContext, bucket: BucketInfo, wanted: list[Deletion]) -> Deleted:
    """Delete objects and versions; return what became of them."""
    objects = context.dependencies.objects
    plain = [each for each in wanted if each.etag is None and each.version_id is None]
    matching = {(each.key, each.etag): each for each in wanted if each.etag is not None}
    versions = {(each.key, each.version_id): each for each in wanted if each.version_id is not None}
    deleted = Deleted()
    try:
        if plain:
            deleted.markers |= await objects.delete(bucket, [each.key for each in plain])
    except BrainError as error:
        deleted.fail(plain, from_brain_error(error))
    try:
        if matching:
            differing, markers = await objects.delete_matching(bucket, [*matching])
            deleted.markers |= markers
            deleted.fail((matching[each] for each in differing), S3Error("PreconditionFailed"))
    except BrainError as error:
        deleted.fail(matching.values(), from_brain_error(error))
    try:
        if versions:
            found = await objects.delete_versions(bucket, versions)
            deleted.were_markers = {
                versions[each] for each, is_marker in found.items() if is_marker
            }
    except BrainError as error:
        deleted.fail(versions.values(), from_brain_error(error))
    return deleted
