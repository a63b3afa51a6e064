"""The lifecycle of buckets: objects that a rule lets expire are deleted, old uploads are aborted.

Every moment of a rule is a midnight of UTC, so a bucket's keys are walked once a day, and again
when its rules change. One brain walks a bucket at a time (a lease); after its end another one
begins anew. Nothing depends on that: what is deleted is compared with what was read.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final
from urllib.parse import parse_qsl
from uuid import UUID

import structlog
from psycopg import errors as postgres

from common.machine.reasons import reason
from edgecache.brain.core.errors import (
    DatabaseUnavailable,
    NoSuchBucket,
    UploadBusy,
    UploadMissing,
)
from edgecache.brain.core.loop_steps import in_steps
from edgecache.brain.core.paging import LAST
from edgecache.brain.core.share_key import use_share_of_bucket, use_share_of_platform
from edgecache.brain.core.values import TAGGING_HEADER, BucketInfo
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase, Row
from edgecache.brain.directory.commits import KEYS_LOCKED
from edgecache.brain.directory.versions import BUCKET, LIFECYCLE_DIGEST, bucket_of
from edgecache.brain.objects import builtin_origin, upload_rows
from edgecache.brain.objects.leases import Leases
from edgecache.brain.upkeep.lifecycle_rules import LifecycleRule, expiry_by, loaded, older_than
from edgecache.brain.upkeep.lifecycle_versions import expire_versions

log = structlog.get_logger(__name__)

# Rows that one statement reads.
READ: Final = 1000
UPLOADS_READ: Final = 100
# Rules that one step of the event loop compares with objects: about a millisecond.
COMPARED: Final = 2000
# Of a bucket's lease; no fetch has this name.
LEASE: Final = ("", "lifecycle")

DUE: Final = (
    "SELECT id FROM brain_bucket WHERE lifecycle <> '[]'"
    " AND (lifecycle_done IS NULL OR lifecycle_done < %s) ORDER BY id"
)
RULES: Final = "SELECT lifecycle FROM brain_bucket WHERE id = %s"
DONE: Final = (
    "UPDATE brain_bucket SET lifecycle_done = %s"  # noqa: S608 - literals alone
    " WHERE id = %s AND " + LIFECYCLE_DIGEST + " = %s"
)
OBJECTS: Final = (
    "SELECT s.key, s.etag, s.last_modified, b.size,"
    " coalesce(s.headers ->> %(tagging)s, '') AS tagging"
    " FROM brain_storedobject s JOIN brain_blob b ON b.sha256 = s.blob_id"
    " WHERE s.bucket_id = %(bucket)s AND s.key > %(after)s AND s.key >= %(prefix)s"
    " AND s.key <= %(last)s ORDER BY s.key LIMIT %(limit)s"
)
UPLOADS: Final = (
    "SELECT id, key, created_at FROM brain_upload WHERE bucket_id = %(bucket)s"
    " AND created_at < %(before)s AND key >= %(key)s AND (key > %(key)s OR id > %(id)s)"
    " ORDER BY key, id LIMIT %(limit)s"
)


class Lifecycle:
    """This brain's part of the work."""

    def __init__(self, database: BrainDatabase, coherence: Coherence, brain_id: UUID) -> None:
        self._database = database
        self._coherence = coherence
        self._leases = Leases(database, coherence, brain_id)

    async def stop(self) -> None:
        await self._leases.stop()

    async def run(self, *, now: datetime) -> None:
        """Apply the rules of every bucket that has not had its day; one that fails has it later.

        Raises DatabaseUnavailable.
        """
        for row in await self._database.all(DUE, [now.date()]):
            try:
                await self._run_alone(row.id, now)
            except DatabaseUnavailable as exc:
                # Perhaps only for its tenant, whose requests use its share of the connections.
                log.warning("lifecycle_put_off", bucket_id=row.id, reason=reason(exc))
            except Exception:
                log.exception("lifecycle_failed", bucket_id=row.id)
            finally:
                use_share_of_platform()

    async def _run_alone(self, bucket_id: int, now: datetime) -> None:
        name = (bucket_id, *LEASE)
        # A bucket may be deleted meanwhile.
        with suppress(NoSuchBucket, postgres.ForeignKeyViolation):
            if not await self._leases.acquire(name):
                return
            try:
                await self._run_bucket(bucket_id, now)
            finally:
                await self._leases.release(name)

    async def _run_bucket(self, bucket_id: int, now: datetime) -> None:
        row = await self._database.one(BUCKET + "id = %s", [bucket_id])
        kept = await self._database.one(RULES, [bucket_id])
        if row is None or kept is None:
            return
        bucket = bucket_of(row)
        use_share_of_bucket(bucket)
        rules = [rule for rule in await in_steps(loaded, kept.lifecycle) if rule.is_enabled]
        expired = await self._expire(bucket, rules, now)
        versions = markers = 0
        if bucket.versioning:
            versions, markers = await expire_versions(
                self._database, self._coherence, bucket, rules, now=now, compared=COMPARED
            )
        aborted = await self._abort(bucket, rules, now)
        await self._database.run(DONE, [now.date(), bucket_id, bucket.lifecycle])
        if expired or aborted or versions or markers:
            log.info(
                "lifecycle_applied",
                organization_id=bucket.tenant.organization_id,
                environment_pk=bucket.tenant.environment_pk,
                bucket_id=bucket_id,
                expired=expired,
                expired_versions=versions,
                removed_markers=markers,
                aborted_uploads=aborted,
            )

    async def _expire(
        self, bucket: BucketInfo, rules: Sequence[LifecycleRule], now: datetime
    ) -> int:
        """Delete what has expired; return the number of objects."""
        expiring = [rule for rule in rules if rule.expires and not _is_later(rule, now)]

        def is_due(row: Row) -> bool:
            expiry = expiry_by(
                expiring,
                row.key,
                size=row.size,
                tags=dict(parse_qsl(row.tagging, keep_blank_values=True)),
                last_modified=row.last_modified,
            )
            return expiry is not None and expiry[0] <= now

        step = max(COMPARED // max(len(expiring), 1), 1)
        expired = 0
        for prefix in _outermost(expiring):
            after = ""
            while rows := await self._page(bucket, prefix, after):
                after = rows[-1].key
                are_due = await in_steps(is_due, rows, step=min(step, len(rows)))
                due = [row for row, is_expired in zip(rows, are_due, strict=True) if is_expired]
                for start in range(0, len(due), KEYS_LOCKED):
                    expired += await builtin_origin.expire(
                        self._coherence, bucket, due[start : start + KEYS_LOCKED]
                    )
        return expired

    async def _page(self, bucket: BucketInfo, prefix: str, after: str) -> list[Row]:
        return await self._database.all(
            OBJECTS,
            {
                "tagging": TAGGING_HEADER,
                "bucket": bucket.id,
                "prefix": prefix,
                "after": after,
                "last": prefix + LAST,
                "limit": READ,
            },
        )

    async def _abort(
        self, bucket: BucketInfo, rules: Sequence[LifecycleRule], now: datetime
    ) -> int:
        """Abort the uploads that were not completed in time; return their number."""
        befores = [
            (rule.prefix or "", older_than(now, rule.abort_days))
            for rule in rules
            if rule.abort_days is not None
        ]
        if not befores:
            return 0
        aborted, key, upload_id = 0, "", ""
        while True:
            rows = await self._database.all(
                UPLOADS,
                {
                    "bucket": bucket.id,
                    "before": max(before for _, before in befores),
                    "key": key,
                    "id": upload_id,
                    "limit": UPLOADS_READ,
                },
            )
            for row in rows:
                if any(
                    row.key.startswith(prefix) and row.created_at < before
                    for prefix, before in befores
                ):
                    aborted += await self._abort_one(row.id)
            if len(rows) < UPLOADS_READ:
                return aborted
            key, upload_id = rows[-1].key, rows[-1].id

    async def _abort_one(self, upload_id: str) -> bool:
        # Its client may be ending it, or writing parts: then tomorrow.
        with suppress(UploadMissing, UploadBusy):
            await upload_rows.remove(self._database, upload_id, waits=False)
            return True
        return False


def _is_later(rule: LifecycleRule, now: datetime) -> bool:
    """True if nothing expires by a rule yet."""
    return rule.date is not None and rule.date > now.date().isoformat()


def _outermost(rules: Sequence[LifecycleRule]) -> Iterator[str]:
    """Yield the prefixes of rules in order, without those below another one."""
    last: str | None = None
    for prefix in sorted({rule.prefix or "" for rule in rules}):
        if last is None or not prefix.startswith(last):
            last = prefix
            yield prefix
