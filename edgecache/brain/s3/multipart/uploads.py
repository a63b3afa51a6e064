"""Multipart uploads: rows, and a file for each part. Unfinished ones are deleted after a week."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import errors as postgres
from psycopg.types.json import Jsonb

from edgecache.brain.database import Database, Row
from edgecache.brain.delivery.delivery import Tenant
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.storage.parts import PartFile, Parts, StoredPart
from edgecache.brain.storage.staging import Staging
from edgecache.brain.storage.stores import stored_blobs
from edgecache.brain.values import BucketInfo, Fields, StagedFile

ID_BYTES: Final = 48
ID_LIMIT: Final = 64
EXPIRED_AT_ONCE: Final = 20

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
OLD_PART: Final = "SELECT store_id, file FROM brain_uploadpart WHERE upload_id = %s AND number = %s"
WRITE_PART: Final = (
    "INSERT INTO brain_uploadpart (upload_id, number, store_id, file, size, etag, checksums)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (upload_id, number) DO UPDATE SET"
    " store_id = EXCLUDED.store_id, file = EXCLUDED.file, size = EXCLUDED.size,"
    " etag = EXCLUDED.etag, checksums = EXCLUDED.checksums, created_at = now() RETURNING created_at"
)
PARTS: Final = (
    "SELECT number, file, size, etag, checksums, created_at, store_id FROM brain_uploadpart"
    " WHERE upload_id = %s AND number > %s ORDER BY number LIMIT %s"
)
EXPIRED: Final = "SELECT id FROM brain_upload WHERE created_at < now() - interval '7 days' LIMIT %s"
PAGE: Final = (
    "SELECT id, key, created_at, checksum_algorithm, checksum_type FROM brain_upload"
    " WHERE bucket_id = %s AND starts_with(key, %s) AND (key > %s OR (key = %s AND id > %s))"
    ' ORDER BY key, id COLLATE "C" LIMIT %s'
)


@dataclass(frozen=True, slots=True)
class Upload:
    """An unfinished upload. algorithm, checksum_type: empty where the client named none."""

    id: str
    key: str
    content_type: str
    headers: Mapping[str, str]
    metadata: Mapping[str, str]
    algorithm: str
    checksum_type: str
    tenant: Tenant


@dataclass(frozen=True, slots=True)
class Part:
    """A part that was received completely."""

    number: int
    file: str
    size: int
    etag: str
    checksums: Mapping[str, str]
    created_at: datetime
    store_id: int | None = None

    @property
    def stored(self) -> StoredPart:
        """Return where its bytes are."""
        at = PartFile(self.store_id, self.file)
        return StoredPart(at, self.size, bytes.fromhex(self.etag))


async def create(
    database: Database,
    bucket: BucketInfo,
    key: str,
    fields: Fields,
    *,
    algorithm: str,
    checksum_type: str,
) -> str:
    """Create an upload; return its id, which only its tenant can use.

    Raises DatabaseUnavailable.
    """
    upload_id = secrets.token_urlsafe(ID_BYTES)
    values: Sequence[Any] = (
        *(upload_id, bucket.id, key, fields.content_type),
        *(Jsonb(dict(fields.headers)), Jsonb(dict(fields.metadata)), algorithm, checksum_type),
    )
    try:
        await database.run(INSERT, values)
    except postgres.ForeignKeyViolation:
        raise S3Error("NoSuchBucket") from None
    return upload_id


async def find(database: Database, bucket: BucketInfo, key: str, upload_id: str) -> Upload:
    """Return the upload of this id, which must be for this key.

    Raises S3Error NoSuchUpload, DatabaseUnavailable.
    """
    row = None
    if 0 < len(upload_id) <= ID_LIMIT:
        row = await database.one(FIND, [upload_id, bucket.id, key])
    if row is None:
        raise S3Error("NoSuchUpload", extra={"UploadId": upload_id[:ID_LIMIT]})
    return Upload(*(*row, bucket.tenant))


async def write_part(
    database: Database,
    upload_parts: Parts,
    upload: Upload,
    number: int,
    staged: StagedFile,
    checksums: Mapping[str, str],
) -> Part:
    """Store a part, in the place of an earlier one of the same number.

    Raises S3Error NoSuchUpload: it was completed or aborted meanwhile. Nothing is stored then.
    """
    manifest = staged.manifest
    etag = manifest.md5.hex()
    async with upload_parts.keeping(upload.tenant, staged) as kept:
        unneeded: PartFile | None = kept
        try:
            async with database.transaction() as connection:
                if await connection.one(HOLD, [upload.id]) is None:
                    raise S3Error("NoSuchUpload", extra={"UploadId": upload.id})
                replaced = await connection.one(OLD_PART + " FOR UPDATE", [upload.id, number])
                row = await connection.one(
                    WRITE_PART,
                    [*(upload.id, number, *kept), manifest.size, etag, Jsonb(dict(checksums))],
                )
                # The result of a commit that breaks off is unknown: both files stay then.
                unneeded = None
            unneeded = None if replaced is None else PartFile(*replaced)
        finally:
            # Before the commit the new bytes are not needed, afterwards the old ones.
            if unneeded is not None:
                await upload_parts.drop(unneeded)
    return Part(number, kept.name, manifest.size, etag, checksums, _at(row), kept.store_id)


async def parts(
    database: Database, upload_id: str, *, after: int = 0, limit: int = 10_000
) -> list[Part]:
    """Return the parts in order. Raises DatabaseUnavailable."""
    return [Part(*row) for row in await database.all(PARTS, [upload_id, after, limit])]


async def remove(database: Database, staging: Staging, upload_id: str) -> bool:
    """Delete an upload and its parts; False if it did not exist. Raises DatabaseUnavailable."""
    async with database.transaction() as connection:
        held = await connection.one(
            "SELECT 1 FROM brain_upload WHERE id = %s FOR UPDATE", [upload_id]
        )
        gone = await connection.all(stored_blobs.DELETE_PARTS, [[upload_id]])
        await connection.run("DELETE FROM brain_upload WHERE id = %s", [upload_id])
    await staging.drop_parts([row.file for row in gone])
    return held is not None


async def remove_expired(database: Database, staging: Staging) -> None:
    """Delete some of the uploads that were not completed within a week.

    Raises DatabaseUnavailable.
    """
    for row in await database.all(EXPIRED, [EXPIRED_AT_ONCE]):
        await remove(database, staging, row.id)


async def page(
    database: Database, bucket: BucketInfo, *, prefix: str, key: str, upload_id: str, limit: int
) -> list[Row]:
    """Return uploads after a key, and after an upload of that key.

    upload_id: empty means after all uploads of that key. Raises DatabaseUnavailable.
    """
    after_id = upload_id or "\U0010ffff"
    async with database.long():
        return await database.all(PAGE, [bucket.id, prefix, key, key, after_id, limit])


def _at(row: Row | None) -> datetime:
    if row is None:
        raise S3Error("InternalError")
    moment: datetime = row.created_at
    return moment
