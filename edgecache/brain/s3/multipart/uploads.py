"""Multipart uploads: rows, and the parts' bytes in the store. They are deleted after a week."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import errors as postgres
from psycopg.types.json import Jsonb

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.paging import LAST, after
from edgecache.brain.core.values import BucketInfo, EnvironmentKey, StagedFile, WrittenFields
from edgecache.brain.db.database import BrainDatabase, Row
from edgecache.brain.stores.upload_parts import PartFile, StoredPart, UploadParts

ID_BYTES: Final = 48
ID_LIMIT: Final = 64

INSERT: Final = (
    "INSERT INTO brain_upload (id, bucket_id, key, content_type, headers, metadata,"
    " checksum_algorithm, checksum_type) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
)
FIND: Final = (
    "SELECT id, key, content_type, headers, metadata, checksum_algorithm, checksum_type"
    " FROM brain_upload WHERE id = %s AND bucket_id = %s AND key = %s"
)
# A completion or an abort waits for the parts that are being written, and vice versa.
HOLD: Final = "SELECT 1 FROM brain_upload WHERE id = %s FOR KEY SHARE"
OLD_PART: Final = (
    "SELECT store_id, file FROM brain_uploadpart WHERE upload_id = %s AND number = %s FOR UPDATE"
)
# Waits for another first part of the number, and leaves it: the new bytes take its place by an
# UPDATE, which finds its file. One statement for both would lose the name of that file.
NEW_PART: Final = (
    "INSERT INTO brain_uploadpart (store_id, file, size, etag, checksums, upload_id, number)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING created_at"
)
REPLACE_PART: Final = (
    "UPDATE brain_uploadpart SET store_id = %s, file = %s, size = %s, etag = %s, checksums = %s,"
    " created_at = now() WHERE upload_id = %s AND number = %s RETURNING created_at"
)
PARTS: Final = (
    "SELECT number, file, size, etag, checksums, created_at, store_id FROM brain_uploadpart"
    " WHERE upload_id = %s AND number > %s ORDER BY number LIMIT %s"
)
# The next key, and its group: the key up to the delimiter.
_NEXT: Final = (
    "SELECT u.key, CASE"
    " WHEN %(delimiter)s::text <> '' AND strpos(substr(u.key, %(skip)s), %(delimiter)s) > 0"
    " THEN left(u.key, %(skip)s - 1 + strpos(substr(u.key, %(skip)s), %(delimiter)s)"
    " + length(%(delimiter)s) - 1) END AS grouped FROM brain_upload u"
    " WHERE u.bucket_id = %(bucket)s AND u.key >= %(prefix)s AND u.key <= %(last)s"
)
_FIRST: Final = (
    ' AND u.key >= %(key)s AND (u.key > %(key)s OR u.id > %(id)s COLLATE "C")'
    " ORDER BY u.key LIMIT 1"
)
_IS_AFTER: Final = (
    'u.bucket_id = %(bucket)s AND u.key = {key} AND (u.key <> %(key)s OR u.id > %(id)s COLLATE "C")'
)
# How many rows of the page a key has, up to all; a group has one.
_ROWS: Final = (
    "LATERAL (SELECT count(*) AS rows FROM (SELECT FROM brain_upload u WHERE "  # noqa: S608 - literals alone
    + _IS_AFTER.format(key="found.key")
    + " LIMIT CASE WHEN found.grouped IS NULL THEN %(limit)s ELSE 1 END) few) counted"
)
# One index step for each key or group, until the page is full; then the uploads of these keys.
PAGE: Final = (
    "WITH RECURSIVE walk AS (SELECT found.*, 1 AS place, counted.rows AS total FROM ("  # noqa: S608 - literals alone
    + _NEXT
    + _FIRST
    + ") found, "
    + _ROWS
    + " UNION ALL SELECT found.*, given.place + 1, given.total + counted.rows FROM"
    " (SELECT coalesce(grouped || %(leap)s, key) AS key, place, total FROM walk"
    " WHERE total < %(limit)s) given, LATERAL ("
    + _NEXT
    + " AND u.key > given.key ORDER BY u.key LIMIT 1) found, "
    + _ROWS
    + ") SELECT one.*, walk.grouped FROM walk, LATERAL"
    " (SELECT u.key, u.id, u.created_at, u.checksum_algorithm, u.checksum_type"
    " FROM brain_upload u WHERE " + _IS_AFTER.format(key="walk.key") + ' ORDER BY u.id COLLATE "C"'
    " LIMIT CASE WHEN walk.grouped IS NULL THEN %(limit)s ELSE 1 END) one"
    ' ORDER BY walk.place, one.id COLLATE "C" LIMIT %(limit)s'
)


@dataclass(frozen=True, slots=True)
class UnfinishedUpload:
    """An unfinished upload. algorithm, checksum_type: empty where the client named none."""

    id: str
    key: str
    content_type: str
    headers: Mapping[str, str]
    metadata: Mapping[str, str]
    algorithm: str
    checksum_type: str
    tenant: EnvironmentKey


@dataclass(frozen=True, slots=True)
class Part:
    """A part that was received completely."""

    number: int
    file: str
    size: int
    etag: str
    checksums: Mapping[str, str]
    created_at: datetime
    store_id: int

    @property
    def stored(self) -> StoredPart:
        """Return where its bytes are."""
        at = PartFile(self.store_id, self.file)
        return StoredPart(at, self.size, bytes.fromhex(self.etag))


async def create(
    database: BrainDatabase,
    bucket: BucketInfo,
    key: str,
    fields: WrittenFields,
    *,
    algorithm: str,
    checksum_type: str,
) -> str:
    """Create an upload; return its id, which only its tenant can use.

    Raises DatabaseUnavailable.
    """
    upload_id = secrets.token_urlsafe(ID_BYTES)
    values: Sequence[Any] = (
        upload_id,
        bucket.id,
        key,
        fields.content_type,
        Jsonb(dict(fields.headers)),
        Jsonb(dict(fields.metadata)),
        algorithm,
        checksum_type,
    )
    try:
        await database.run(INSERT, values)
    except postgres.ForeignKeyViolation:
        raise S3Error("NoSuchBucket") from None
    return upload_id


async def find(
    database: BrainDatabase, bucket: BucketInfo, key: str, upload_id: str
) -> UnfinishedUpload:
    """Return the upload of this id, which must be for this key.

    Raises S3Error NoSuchUpload, DatabaseUnavailable.
    """
    row = None
    if 0 < len(upload_id) <= ID_LIMIT:
        row = await database.one(FIND, [upload_id, bucket.id, key])
    if row is None:
        raise S3Error("NoSuchUpload", extra={"UploadId": upload_id[:ID_LIMIT]})
    values = [*row, bucket.tenant]
    return UnfinishedUpload(*values)


async def write_part(
    database: BrainDatabase,
    upload_parts: UploadParts,
    upload: UnfinishedUpload,
    number: int,
    staged: StagedFile,
    checksums: Mapping[str, str],
) -> Part:
    """Store a part; it replaces an earlier one with the same number.

    Raises S3Error NoSuchUpload if the upload was completed or aborted; nothing is stored then.
    """
    manifest = staged.manifest
    etag = manifest.md5.hex()
    async with upload_parts.storing(upload.tenant, staged) as kept:
        unneeded: PartFile | None = kept
        values = [*kept, manifest.size, etag, Jsonb(dict(checksums)), upload.id, number]
        try:
            async with database.transaction() as connection:
                if await connection.one(HOLD, [upload.id]) is None:
                    raise S3Error("NoSuchUpload", extra={"UploadId": upload.id})
                replaced = None
                row = await connection.one(NEW_PART, values)
                if row is None:
                    replaced = await connection.one(OLD_PART, [upload.id, number])
                    row = await connection.one(REPLACE_PART, values)
                # The result of a commit that breaks off is unknown: both files stay then.
                unneeded = None
            unneeded = None if replaced is None else PartFile(*replaced)
        finally:
            # Before the commit the new bytes are not needed, afterwards the old ones.
            if unneeded is not None:
                await upload_parts.drop(unneeded)
    return Part(number, kept.name, manifest.size, etag, checksums, _at(row), kept.store_id)


async def parts(
    database: BrainDatabase, upload_id: str, *, after: int = 0, limit: int = 10_000
) -> list[Part]:
    """Return the parts in order. Raises DatabaseUnavailable."""
    return [Part(*row) for row in await database.all(PARTS, [upload_id, after, limit])]


async def page(
    database: BrainDatabase,
    bucket: BucketInfo,
    *,
    prefix: str,
    delimiter: str,
    key: str,
    upload_id: str,
    limit: int,
) -> list[Row]:
    """Return uploads and groups after a key, and after an upload of that key.

    upload_id: empty means after all uploads of that key. Raises DatabaseUnavailable.
    """
    wanted = {
        "bucket": bucket.id,
        "prefix": prefix,
        "last": prefix + LAST,
        "delimiter": delimiter,
        "skip": len(prefix) + 1,
        "leap": LAST,
        "key": after(prefix, key, delimiter),
        "id": upload_id or "\U0010ffff",
        "limit": limit,
    }
    return await database.all(PAGE, wanted)


def _at(row: Row | None) -> datetime:
    if row is None:
        raise S3Error("InternalError")
    moment: datetime = row.created_at
    return moment
