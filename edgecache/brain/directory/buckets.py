"""Buckets: create, change, list and delete."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace
from psycopg import errors as postgres
from psycopg.types.json import Jsonb

from edgecache.brain.core.errors import (
    BucketChanged,
    BucketExists,
    BucketNotEmpty,
    Invalid,
    KeyRefused,
    NoSuchBucket,
    NoSuchOrigin,
)
from edgecache.brain.core.values import BucketInfo, EnvironmentKey, check_url_key
from edgecache.brain.db import environment_limits
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory import commits
from edgecache.brain.directory.versions import BUCKET, bucket_of, bucket_sql, stored_options
from edgecache.brain.stores import stored_blobs
from edgecache.protocol.fields import FieldError
from edgecache.protocol.resources import BucketOptions

# Rows that still refer to a bucket without objects.
LEFTOVERS: Final = (
    "DELETE FROM brain_purgerecord WHERE bucket_id = %s",
    "DELETE FROM brain_pendingwrite WHERE bucket_id = %s",
    "DELETE FROM brain_filllease WHERE bucket_id = %s",
    "DELETE FROM brain_originfailure WHERE bucket_id = %s",
)
INSERT: Final = bucket_sql(
    "INSERT INTO brain_bucket (organization_id, environment_pk, name, public_name, origin_prefix,"
    " origin_id, {options}) SELECT %s, %s, %s, %s, %s, %s, {values}"
    " WHERE %s::bigint IS NULL OR EXISTS"
    " (SELECT FROM brain_origin WHERE id = %s AND organization_id = %s AND environment_pk = %s)"
    " RETURNING {columns}"
)
HOLDS: Final = (
    "SELECT EXISTS (SELECT FROM brain_storedobject WHERE bucket_id = %(bucket)s)"
    " OR EXISTS (SELECT FROM brain_noncurrentversion WHERE bucket_id = %(bucket)s) AS holds"
)
# First the locks: parts that are being written then come before this, or find no upload.
LOCK_UPLOADS: Final = "SELECT id FROM brain_upload WHERE bucket_id = %s ORDER BY id FOR UPDATE"
DELETE_UPLOADS: Final = "DELETE FROM brain_upload WHERE bucket_id = %s"
REMOVAL_TIMEOUT_S: Final = 60.0
SET_TAGS: Final = "UPDATE brain_bucket SET tags = %s WHERE id = %s"
REVOKE_LINKS: Final = (
    "UPDATE brain_bucket SET links_generation = links_generation + 1"
    " WHERE organization_id = %s AND environment_pk = %s AND id = %s"
)
# The next round of upkeep applies new rules.
SET_LIFECYCLE: Final = "UPDATE brain_bucket SET lifecycle = %s, lifecycle_done = NULL WHERE id = %s"
IN_ENVIRONMENT: Final = BUCKET + "organization_id = %s AND environment_pk = %s"
LOCK: Final = IN_ENVIRONMENT + " AND id = %s FOR NO KEY UPDATE"
UPDATE: Final = bucket_sql("UPDATE brain_bucket SET ({options}) = ROW({values}) WHERE id = %s")
DEFAULTS: Final = BucketOptions()


class Buckets:
    """Changes of buckets; all brains see a change when the call returns."""

    def __init__(self, database: BrainDatabase, coherence: Coherence) -> None:
        self._database = database
        self._coherence = coherence

    async def list(self, tenant: EnvironmentKey) -> list[BucketInfo]:
        """Return the environment's buckets by name. Raises DatabaseUnavailable."""
        rows = await self._database.all(IN_ENVIRONMENT + ' ORDER BY name COLLATE "C"', tenant)
        return [bucket_of(row) for row in rows]

    async def one(self, tenant: EnvironmentKey, name: str) -> BucketInfo:
        """Return the environment's bucket of this name.

        Raises NoSuchBucket, DatabaseUnavailable.
        """
        row = await self._database.one(IN_ENVIRONMENT + " AND name = %s", [*tenant, name])
        if row is None:
            raise NoSuchBucket
        return bucket_of(row)

    async def create(
        self,
        tenant: EnvironmentKey,
        name: str,
        *,
        origin_id: int | None = None,
        origin_prefix: str = "",
        options: BucketOptions = DEFAULTS,
        tags: Mapping[str, str] | None = None,
    ) -> BucketInfo:
        """Create a bucket. origin_id: of the same environment; None is the built-in origin.

        The caller checks the name's form.
        Raises BucketExists, NoSuchOrigin, Invalid, LimitReached, DatabaseUnavailable.
        """
        if origin_id is not None and options.versioning:
            raise _only_built_in()
        try:
            async with self._coherence.transaction() as change:
                await environment_limits.check(change, "brain_bucket", tenant)
                await _check_log(change, tenant, name, options)
                row = await change.one(
                    INSERT,
                    [
                        *tenant,
                        name,
                        secrets.token_hex(10),
                        origin_prefix,
                        origin_id,
                        *stored_options(options),
                        origin_id,
                        origin_id,
                        *tenant,
                    ],
                )
                if row is None:
                    raise NoSuchOrigin
                await _check_website(change, options, origin_id)
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
        changes: Mapping[str, Any],
        *,
        expected: BucketOptions | None = None,
    ) -> BucketInfo:
        """Change a bucket.

        changes: values of ``BucketOptions`` by name. expected: the options that the caller has
        read; None expects nothing. Raises NoSuchBucket, BucketChanged, Invalid,
        DatabaseUnavailable.
        """
        async with self._coherence.transaction() as change:
            row = await change.one(LOCK, [*tenant, bucket_id])
            if row is None:
                raise NoSuchBucket
            before = bucket_of(row)
            if expected is not None and before.options != expected:
                raise BucketChanged
            after = replace(before, **changes)
            await _check_website(change, after, before.origin_id)
            if after.log_bucket != before.log_bucket:
                await _check_log(change, tenant, after.name, after)
            _check_versioning(after, before.versioning)
            await change.run(UPDATE, [*stored_options(after), bucket_id])
            change.announce("bucket", bucket_id)
        return after

    async def revoke_links(self, tenant: EnvironmentKey, bucket_id: int) -> None:
        """End all signed links of a bucket. Raises NoSuchBucket, DatabaseUnavailable."""
        async with self._coherence.transaction() as change:
            if not await change.run(REVOKE_LINKS, [*tenant, bucket_id]):
                raise NoSuchBucket
            change.announce("bucket", bucket_id)

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

    async def lifecycle(self, bucket_id: int) -> Sequence[Mapping[str, Any]]:
        """Return a bucket's lifecycle rules. Raises DatabaseUnavailable."""
        row = await self._database.one(
            "SELECT lifecycle FROM brain_bucket WHERE id = %s", [bucket_id]
        )
        return () if row is None else tuple(row.lifecycle)

    async def set_lifecycle(self, bucket_id: int, rules: Sequence[Mapping[str, Any]]) -> None:
        """Replace a bucket's lifecycle rules. Raises NoSuchBucket, DatabaseUnavailable."""
        async with self._coherence.transaction() as change:
            if not await change.run(SET_LIFECYCLE, [Jsonb(rules), bucket_id]):
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
            held = await change.one(HOLDS, {"bucket": bucket_id})
            if held is None or held.holds:
                raise BucketNotEmpty
            await remove(change, bucket_id)


async def _check_website(
    change: AnnouncingTransaction, options: BucketOptions, origin_id: int | None
) -> None:
    """Refuse options of a website that cannot be served. Raises Invalid."""
    index, error = options.website_index, options.website_error
    refused = []
    if "/" in index or not _is_key(index):
        refused.append(FieldError("website_index", "Write the name of a file, without a slash."))
    if error.startswith("/") or not _is_key(error):
        refused.append(FieldError("website_error", "Write a key, without a slash before it."))
    if not index and (error or options.website_fallback):
        refused.append(FieldError("website_index", "A website needs an index document."))
    if index and origin_id is not None:
        origin = await change.one("SELECT kind FROM brain_origin WHERE id = %s", [origin_id])
        if origin is not None and origin.kind == "http":
            sentence = "An HTTP origin has index and error documents of its own."
            refused.append(FieldError("website_index", sentence))
    if refused:
        raise Invalid(refused)


def _is_key(text: str) -> bool:
    try:
        check_url_key(text)
    except KeyRefused:
        return False
    return True


async def _check_log(
    change: AnnouncingTransaction, tenant: EnvironmentKey, name: str, options: BucketOptions
) -> None:
    """Refuse a log that cannot be written. name: of the bucket that is logged. Raises Invalid."""
    if not options.log_bucket:
        return
    row = await change.one(IN_ENVIRONMENT + " AND name = %s", [*tenant, options.log_bucket])
    if options.log_bucket == name:
        refusal = "a bucket cannot keep its own access log"
    elif row is None:
        refusal = "the environment has no bucket of this name"
    elif row.origin_id is not None:
        refusal = "a bucket with an origin of its own cannot keep access logs"
    else:
        return
    raise Invalid([FieldError("log_bucket", refusal)])


def _check_versioning(after: BucketInfo, before: str) -> None:
    """Refuse versions of another origin's objects, and to forget that there were any.

    Raises Invalid.
    """
    if after.versioning and after.origin_id is not None:
        raise _only_built_in()
    if before and not after.versioning:
        sentence = "can be Suspended, and Enabled again, but the versions stay"
        raise Invalid([FieldError("versioning", sentence)])


def _only_built_in() -> Invalid:
    return Invalid([FieldError("versioning", "is for buckets without an origin of their own")])


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
