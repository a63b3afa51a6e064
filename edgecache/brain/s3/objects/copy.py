"""CopyObject: within the built-in origin without moving a byte."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from edgecache.brain.aws import checksums, requests
from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.xml import Node, document
from edgecache.brain.core.errors import OriginChanged, OriginMissing, StoreMissing, TargetMissing
from edgecache.brain.core.values import TAGGING_HEADER, BucketInfo, ObjectVersion, WrittenFields
from edgecache.brain.s3 import bodies, encryption, tags
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.lifecycle import expiry_headers
from edgecache.brain.s3.listing_query import iso
from edgecache.brain.s3.objects import conditions, headers, version_ids
from edgecache.brain.s3.objects.first_steps import find_object

T = TypeVar("T")

SOURCE_HEADER = "x-amz-copy-source"
# Attempts to copy a source that is overwritten again and again.
RETRIES: Final = 5
PAUSE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class CopySource:
    """The object to copy, as it was when the request arrived.

    version_id: the one that the request names; None for the current version.
    """

    bucket: BucketInfo
    key: str
    version: ObjectVersion
    version_id: str | None

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The header of the version that was copied."""
        described = version_ids.headers(self.bucket, self.version)
        return [("x-amz-copy-source-version-id", shown) for _, shown in described]


async def find_source(context: RequestContext) -> CopySource:
    """Find the source, which the caller must be allowed to read, and apply its conditions.

    Raises S3Error: InvalidArgument, NoSuchBucket, AccessDenied, NoSuchKey, PreconditionFailed.
    """
    text = context.request.header(SOURCE_HEADER)
    path, _, query = text.partition("?")
    bucket_name, _, key = requests.form_decoded(path).removeprefix("/").partition("/")
    name, _, wanted = query.partition("=")
    if (query and name != "versionId") or not bucket_name or not key:
        raise S3Error(
            "InvalidArgument",
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
            extra={"ArgumentName": SOURCE_HEADER, "ArgumentValue": text[:200]},
        )
    requests.check_name_and_key(bucket_name, key)
    bucket = await context.bucket(bucket_name)
    context.check_owner(bucket.tenant, "x-amz-source-expected-bucket-owner")
    literal = requests.decoded(path).removeprefix("/").partition("/")[2]
    named = version_ids.parse(requests.decoded(wanted), bucket) if query else None
    key, version = await _find(context, bucket, key, literal, named)
    conditions.check_copy(context.request, version.etag, version.last_modified)
    return CopySource(bucket, key, version, named)


async def _find(
    context: RequestContext, bucket: BucketInfo, key: str, literal: str, version_id: str | None
) -> tuple[str, ObjectVersion]:
    """Return the key and the version of a source.

    literal: the key with its pluses, which some clients write unencoded for themselves; it counts
    where the other one is absent. Raises S3Error NoSuchKey.
    """
    try:
        return key, await _readable(context, bucket, key, version_id)
    except S3Error as absent:
        if literal == key:
            raise
        try:
            return literal, await _readable(context, bucket, literal, version_id)
        except S3Error:
            raise absent from None


async def _readable(
    context: RequestContext, bucket: BucketInfo, key: str, version_id: str | None
) -> ObjectVersion:
    try:
        return await find_object(context, bucket, key, version_id)
    except S3Error as refused:
        if refused.code != "MethodNotAllowed":
            raise
        raise S3Error(
            "InvalidRequest",
            "The source of a copy request may not specifically refer to a delete marker by "
            "version id.",
        ) from None


async def copied(context: RequestContext, copy: Callable[[CopySource], Awaitable[T]]) -> T:
    """Return the result of ``copy`` for the source, or for its next version if it changes.

    Raises S3Error as ``find_source`` does, and what the last ``copy`` raises.
    """
    for attempt in range(RETRIES):
        try:
            return await _copied(context, copy)
        except (OriginChanged, StoreMissing):
            # Until this brain knows of the next version.
            await asyncio.sleep(PAUSE_S * 2**attempt)
    return await _copied(context, copy)


async def _copied(context: RequestContext, copy: Callable[[CopySource], Awaitable[T]]) -> T:
    source = await find_source(context)
    try:
        return await copy(source)
    except TargetMissing:
        raise
    except OriginMissing:
        raise S3Error("NoSuchKey", extra={"Key": source.key}) from None


async def copy_object(context: RequestContext) -> S3Response:
    """Write an object with another one's bytes, and its headers unless they are replaced.

    Raises S3Error: NoSuchBucket, NoSuchKey, PreconditionFailed, InvalidRequest, InvalidArgument.
    """
    bucket = await context.writable_bucket()
    encryption.check(context, bucket)
    wanted = conditions.write_conditions(context.request, bucket)

    async def copy(source: CopySource) -> tuple[CopySource, ObjectVersion]:
        name = _algorithm(context.request, source.version)
        computed = None
        if name and not _known_checksum(name, source.version):
            computed = await _compute(context, source, name)
        copies: list[ObjectVersion] = []

        def describe(version: ObjectVersion) -> WrittenFields:
            copies.append(version)
            return _fields(context, bucket, source, computed, version)

        written = await context.dependencies.objects.copy(
            (source.bucket, source.key),
            bucket,
            context.request.key,
            describe,
            conditions=wanted,
            version_id=source.version_id,
        )
        return replace(source, version=copies[-1]), written

    source, version = await copied(context, copy)
    nodes: list[Node] = [
        ("LastModified", iso(version.last_modified)),
        ("ETag", f'"{version.etag}"'),
        *checksums.elements(version.checksums),
    ]
    copied_headers = [
        *source.headers,
        *version_ids.of_write(version),
        *await expiry_headers(context, bucket, version),
        *encryption.headers(context, bucket),
    ]
    return S3Response(headers=copied_headers, body=document("CopyObjectResult", nodes))


def _fields(
    context: RequestContext,
    bucket: BucketInfo,
    source: CopySource,
    computed: "ComputedChecksum | None",
    version: ObjectVersion,
) -> WrittenFields:
    """Return the fields of the copy of a version, which may be newer than the one found first."""
    request = context.request
    conditions.check_copy(request, version.etag, version.last_modified)
    directive = _directive(request, "x-amz-metadata-directive")
    headers.check_settings(request, is_public=bucket.is_public)
    if directive == "COPY":
        is_same = (source.bucket.name, source.key) == (request.bucket, request.key)
        if is_same and source.version_id is None:
            raise S3Error(
                "InvalidRequest",
                "This copy request is illegal because it is trying to copy an object to itself "
                "without changing the object's metadata, storage class, website redirect location "
                "or encryption attributes.",
            )
        fields = WrittenFields(version.content_type, version.sent_headers, version.metadata)
    else:
        fields = headers.upload_fields(request, bucket)
    tagging = _tagging(request, bucket, version)
    kept = {name: value for name, value in fields.headers.items() if name != TAGGING_HEADER}
    if tagging:
        kept[TAGGING_HEADER] = tagging
    return replace(fields, headers=kept, checksums=_checksums(request, version, computed))


def _tagging(request: S3Request, bucket: BucketInfo, version: ObjectVersion) -> str:
    """Return the copy's tags. The source's tags are not copied to a bucket with its own origin."""
    if _directive(request, "x-amz-tagging-directive") == "REPLACE":
        return tags.of_upload(request, bucket)
    return "" if bucket.origin_id is not None else version.headers.get(TAGGING_HEADER, "")


def _directive(request: S3Request, header: str) -> str:
    directive = request.header(header) or "COPY"
    if directive not in {"COPY", "REPLACE"}:
        raise S3Error(
            "InvalidArgument",
            f"Unknown {header.split('-')[2]} directive.",
            extra={"ArgumentName": header, "ArgumentValue": directive[:100]},
        )
    return directive


@dataclass(frozen=True, slots=True)
class ComputedChecksum:
    """A checksum of the bytes of one version of a source."""

    name: str
    value: str
    version: ObjectVersion


async def _compute(context: RequestContext, source: CopySource, name: str) -> ComputedChecksum:
    """Read the whole source.

    Raises S3Error: InvalidRequest for a source that is too large to read; NotImplemented for one
    whose versions cannot be told apart. Otherwise as ``ObjectCache.open``.
    """
    if source.version.size > bodies.UPLOAD_LIMIT_BYTES:
        raise S3Error(
            "InvalidRequest",
            f"The {name.upper()} of a copy is computed of at most {bodies.UPLOAD_LIMIT_BYTES} "
            "bytes.",
        )
    opened = await context.dependencies.objects.open_source(
        source.bucket, source.key, source.version_id
    )
    running = checksums.new_checksum(name)
    async for piece in opened.body():
        running.update(piece)
    version = await opened.whole()
    if not version.sha256 and not version.etag:
        raise not_implemented(f"The {name.upper()} of a source without an ETag")
    return ComputedChecksum(name, checksums.encode(running.digest()), version)


def _algorithm(request: S3Request, version: ObjectVersion) -> str:
    """Return the algorithm of a copy's checksum: the one asked for, or the source's, or none.

    Raises S3Error InvalidRequest.
    """
    names = [name for name in version.checksums if name in checksums.SIZES]
    return checksums.requested_algorithm(request) or next(iter(names), "")


def _known_checksum(name: str, version: ObjectVersion) -> str:
    """Return a checksum of all bytes of a version that is known without them; else empty."""
    is_full = version.checksums.get("type", checksums.FULL) == checksums.FULL
    if is_full and name in version.checksums:
        return version.checksums[name]
    return checksums.from_digests(name, version) if version.sha256 else ""


def _checksums(
    request: S3Request, version: ObjectVersion, computed: ComputedChecksum | None
) -> dict[str, str]:
    """Return the checksum of the copy, which has one part whatever the source had.

    Raises OriginChanged if the checksum is that of another version.
    """
    name = _algorithm(request, version)
    if not name and not version.sha256:
        return {}
    name = name or "sha256"
    value = _known_checksum(name, version)
    if not value:
        if computed is None or computed.name != name or not _are_same(computed.version, version):
            raise OriginChanged
        value = computed.value
    return {name: value, "type": checksums.FULL}


def _are_same(one: ObjectVersion, other: ObjectVersion) -> bool:
    """True if two versions have the same bytes, by their hashes if both are known."""
    if one.sha256 and other.sha256:
        return one.sha256 == other.sha256
    return bool(one.etag) and one.etag == other.etag
