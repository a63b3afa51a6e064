"""Buckets: create, change, list and delete."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import errors as postgres
from psycopg.types.json import Jsonb

from edgecache.brain.core.errors import (
    BucketChanged,
    BucketExists,
    BucketNotEmpty,
    NoSuchBucket,
    NoSuchOrigin,
)
from edgecache.brain.core.values import BucketInfo, EnvironmentKey
from edgecache.brain.db import environment_limits
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory import commits
from edgecache.brain.directory.versions import BUCKET, bucket_of
from edgecache.brain.stores import stored_blobs

# Rows that still refer to a bucket without objects.
LEFTOVERS: Final = (
    "DELETE FROM brain_purgerecord WHERE bucket_id = %s",
    "DELETE FROM brain_pendingwrite WHERE bucket_id = %s",
    "DELETE FROM brain_filllease WHERE bucket_id = %s",
)
INSERT: Final = (
    "INSERT INTO brain_bucket (organization_id, environment_pk, name, public_name, origin_prefix,"
    " is_public, allows_redirect, verifies_reads, forwards_writes, forwarded_headers, origin_id)"
    " SELECT %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s WHERE %s::bigint IS NULL OR EXISTS"
    " (SELECT FROM brain_origin WHERE id = %s AND organization_id = %s AND environment_pk = %s)"
    " RETURNING id, organization_id, environment_pk, name, public_name, origin_id, origin_prefix,"
    " is_public, allows_redirect, verifies_reads, forwards_writes, forwarded_headers,"
    " created_at"
)
HOLDS: Final = "SELECT EXISTS (SELECT FROM brain_storedobject WHERE bucket_id = %s) AS holds"
# First the locks: parts that are being written then come before this, or find no upload.
LOCK_UPLOADS: Final = "SELECT id FROM brain_upload WHERE bucket_id = %s ORDER BY id FOR UPDATE"
DELETE_UPLOADS: Final = "DELETE FROM brain_upload WHERE bucket_id = %s"
REMOVAL_TIMEOUT_S: Final = 60.0
SET_TAGS: Final = "UPDATE brain_bucket SET tags = %s WHERE id = %s"
LOCK: Final = BUCKET + "organization_id = %s AND environment_pk = %s AND id = %s FOR NO KEY UPDATE"
UPDATE: Final = (
    "UPDATE brain_bucket SET is_public = coalesce(%s, is_public),"
    " allows_redirect = coalesce(%s, allows_redirect),"
    " verifies_reads = coalesce(%s, verifies_reads),"
    " forwards_writes = coalesce(%s, forwards_writes),"
    " forwarded_headers = coalesce(%s, forwarded_headers)"
    " WHERE organization_id = %s AND environment_pk = %s AND id = %s"
    " RETURNING id, organization_id, environment_pk, name, public_name, origin_id, origin_prefix,"
    " is_public, allows_redirect, verifies_reads, forwards_writes, forwarded_headers,"
    " created_at"
)


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """A bucket's options; None leaves one unchanged. forwarded_headers: names with commas."""

    is_public: bool | None = None
    allows_redirect: bool | None = None
    verifies_reads: bool | None = None
    forwards_writes: bool | None = None
    forwarded_headers: str | None = None


NO_CHANGES: Final = BucketOptions()


class Buckets:
    """Changes of buckets; all brains see a change when the call returns."""

    def __init__(self, database: BrainDatabase, coherence: Coherence) -> None:
        self._database = database
        self._coherence = coherence

    async def list(self, tenant: EnvironmentKey) -> list[BucketInfo]:
        """Return the environment's buckets by name. Raises DatabaseUnavailable."""
        rows = await self._database.all(
            BUCKET + 'organization_id = %s AND environment_pk = %s ORDER BY name COLLATE "C"',
            tenant,
        )
        return [bucket_of(row) for row in rows]

    async def create(
        self,
        tenant: EnvironmentKey,
        name: str,
        *,
        origin_id: int | None = None,
        origin_prefix: str = "",
        options: BucketOptions = NO_CHANGES,
        tags: Mapping[str, str] | None = None,
    ) -> BucketInfo:
        """Create a bucket. origin_id: of the same environment; None is the built-in origin.

        The caller checks the name's form.
        Raises BucketExists, NoSuchOrigin, LimitReached, DatabaseUnavailable.
        """
        try:
            async with self._coherence.transaction() as change:
                await environment_limits.check(change, "brain_bucket", tenant)
                row = await change.one(
                    INSERT,
                    [
                        *tenant,
                        name,
                        secrets.token_hex(10),
                        origin_prefix,
                        bool(options.is_public),
                        bool(options.allows_redirect),
                        bool(options.verifies_reads),
                        bool(options.forwards_writes),
                        options.forwarded_headers or "",
                        origin_id,
                        origin_id,
                        origin_id,
                        *tenant,
                    ],
                )
                if row is None:
                    raise NoSuchOrigin
                if tags:
                    await change.run(SET_TAGS, [Jsonb(dict(tags)), row.id])
                change.announce("bucket", row.id)
        except postgres.UniqueViolation:
            raise BucketExists from None
        return bucket_of(row)

    async def change(
        self,
        tenant: EnvironmentKey,
        bucket_id: int,
        options: BucketOptions,
        *,
        expected: BucketOptions = NO_CHANGES,
    ) -> BucketInfo:
        """Change a bucket. expected: the options that the caller has read; None expects nothing.

        Raises NoSuchBucket, BucketChanged, DatabaseUnavailable.
        """
        async with self._coherence.transaction() as change:
            before = await change.one(LOCK, [*tenant, bucket_id])
            if before is not None and not _is_as_expected(before, expected):
                raise BucketChanged
            row = await change.one(
                UPDATE,
                [
                    options.is_public,
                    options.allows_redirect,
                    options.verifies_reads,
                    options.forwards_writes,
                    options.forwarded_headers,
                    *tenant,
                    bucket_id,
                ],
            )
            if row is None:
                raise NoSuchBucket
            change.announce("bucket", bucket_id)
        return bucket_of(row)

    async def tags(self, bucket_id: int) -> dict[str, str]:
        """Return a bucket's own tags. Raises DatabaseUnavailable."""
        row = await self._database.one("SELECT tags FROM brain_bucket WHERE id = %s", [bucket_id])
        return {} if row is None else dict(row.tags)

    async def set_tags(self, bucket_id: int, tags: Mapping[str, str]) -> None:
        """Replace a bucket's own tags. Raises NoSuchBucket, DatabaseUnavailable."""
        changed = await self._database.run(SET_TAGS, [Jsonb(dict(tags)), bucket_id])
        if not changed:
            raise NoSuchBucket

    async def cors(self, bucket_id: int) -> Sequence[Mapping[str, Any]]:
        """Return a bucket's CORS rules. Raises DatabaseUnavailable."""
        row = await self._database.one("SELECT cors FROM brain_bucket WHERE id = %s", [bucket_id])
        return () if row is None else tuple(row.cors)

    async def set_cors(self, bucket_id: int, rules: Sequence[Mapping[str, Any]]) -> None:
        """Replace a bucket's CORS rules. Raises NoSuchBucket, DatabaseUnavailable."""
        async with self._coherence.transaction() as change:
            changed = await change.run(
                "UPDATE brain_bucket SET cors = %s WHERE id = %s", [Jsonb(rules), bucket_id]
            )
            if not changed:
                raise NoSuchBucket
            change.announce("bucket", bucket_id)

    async def delete(self, tenant: EnvironmentKey, bucket_id: int) -> None:
        """Delete a bucket without objects of the built-in origin; unfinished uploads are aborted.

        What it caches of an external origin is dropped; the origin keeps its objects. Raises
        NoSuchBucket, BucketNotEmpty, DatabaseUnavailable.
        """
        async with self._coherence.transaction(timeout_s=REMOVAL_TIMEOUT_S) as change:
            row = await change.one(
                "SELECT id FROM brain_bucket WHERE organization_id = %s AND environment_pk = %s"
                " AND id = %s FOR UPDATE",
                [*tenant, bucket_id],
            )
            if row is None:
                raise NoSuchBucket
            held = await change.one(HOLDS, [bucket_id])
            if held is None or held.holds:
                raise BucketNotEmpty
            await remove(change, bucket_id)


def _is_as_expected(row: Any, expected: BucketOptions) -> bool:
    wanted = {name: getattr(expected, name) for name in BucketOptions.__slots__}
    return all(value is None or getattr(row, name) == value for name, value in wanted.items())


async def remove(change: AnnouncingTransaction, bucket_id: int) -> None:
    """Delete a bucket's row, which the transaction has locked, and the rows that refer to it."""
    gone = await change.all(
        "DELETE FROM brain_cachedobject WHERE bucket_id = %s RETURNING blob_id", [bucket_id]
    )
    await commits.release(change, {row.blob_id for row in gone})
    uploads = await change.all(LOCK_UPLOADS, [bucket_id])
    await change.run(stored_blobs.DELETE_PARTS, [[row.id for row in uploads]])
    await change.run(DELETE_UPLOADS, [bucket_id])
    for statement in LEFTOVERS:
        await change.run(statement, [bucket_id])
    if await change.run("DELETE FROM brain_host WHERE bucket_id = %s", [bucket_id]):
        change.announce("hosts")
    generation = await commits.next_generation(change)
    await change.run("DELETE FROM brain_bucket WHERE id = %s", [bucket_id])
    change.announce("prefix", bucket_id, "", generation)
    change.announce("bucket", bucket_id)
    change.announce("released")
