"""Purges: visible in every brain when they return, with exact counts.

A purge by prefix has two steps. The first, a short transaction, raises the buckets' generation:
from then on everything older under the prefix counts as deleted, in memory and in PostgreSQL. The
second deletes and counts it. The objects of the built-in origin stay: only the cache is emptied.
A purge by tag is one of all prefixes that hits what has the tag; few objects are deleted in the
first step.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import structlog

from common.machine.reasons import reason
from edgecache.brain.core.errors import NoSuchBucket
from edgecache.brain.core.paging import LAST
from edgecache.brain.core.values import EnvironmentKey, PurgeResult
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory import commits
from edgecache.brain.directory.pasted_names import PastedName, PastedNames
from edgecache.brain.http_caching.cache_keys import query_name
from edgecache.brain.http_caching.cache_tags import stored_tag

log = structlog.get_logger(__name__)

STEP_ROWS: Final = 10_000
STEP_TIMEOUT_S: Final = 60.0

RECORD: Final = (
    "INSERT INTO brain_purgerecord (bucket_id, generation, pattern, is_prefix, is_done, brain_id)"
    " SELECT bucket, %(generation)s, pattern, true, false, %(brain)s"
    " FROM unnest(%(buckets)s::bigint[], %(patterns)s::text[]) given (bucket, pattern)"
    " RETURNING id, bucket_id, generation, pattern, tags"
)
RECORD_TAGS: Final = (
    "INSERT INTO brain_purgerecord"
    " (bucket_id, generation, pattern, is_prefix, tags, is_done, brain_id)"
    " VALUES (%s, %s, '', true, %s, false, %s) RETURNING id, bucket_id, generation, pattern, tags"
)
# Objects are counted even if another transaction deletes them first; otherwise a step that deletes
# none might not be the last one. A version that has replaced a row stays.
DELETE_HIT: Final = (
    " gone AS (DELETE FROM brain_cachedobject WHERE ctid = ANY(ARRAY(SELECT place FROM hit))"
    " AND generation < %(generation)s RETURNING blob_id)"
    " SELECT (SELECT count(*) FROM hit) AS hit, count(*) AS gone,"
    " coalesce(string_agg(DISTINCT blob_id, ''), '') AS packed FROM gone"
)
STEP: Final = (
    "WITH hit AS MATERIALIZED (SELECT ctid AS place FROM brain_cachedobject"  # noqa: S608 - literals alone
    " WHERE bucket_id = %(bucket)s AND key >= %(prefix)s AND key <= %(last)s"
    " AND generation < %(generation)s ORDER BY key LIMIT %(limit)s)," + DELETE_HIT
)
# A stored tag names its bucket. Without this one's id no other index than that of tags fits, which
# the planner would prefer for a LIMIT.
TAGGED_STEP: Final = (
    "WITH hit AS MATERIALIZED (SELECT ctid AS place FROM brain_cachedobject"  # noqa: S608 - as above
    " WHERE tags && %(tags)s AND generation < %(generation)s LIMIT %(limit)s)," + DELETE_HIT
)
TAGGED: Final = "SELECT key FROM brain_cachedobject WHERE tags && %s AND generation < %s LIMIT %s"
PREVIEW: Final = (
    "WITH hit AS MATERIALIZED (SELECT o.id, o.blob_id"
    " FROM unnest(%(buckets)s::bigint[], %(patterns)s::text[]) given (bucket, pattern)"
    " JOIN brain_cachedobject o ON o.bucket_id = given.bucket AND o.key >= given.pattern"
    " AND o.key <= given.pattern || %(last)s"
    " UNION SELECT o.id, o.blob_id FROM unnest(%(key_buckets)s::bigint[], %(keys)s::text[])"
    " given (bucket, key) JOIN brain_cachedobject o"
    " ON o.bucket_id = given.bucket AND o.key = given.key"
    " UNION SELECT o.id, o.blob_id FROM unnest(%(query_buckets)s::bigint[], %(query_keys)s::text[],"
    " %(queries)s::text[]) given (bucket, key, query) JOIN brain_cachedobject o"
    " ON o.bucket_id = given.bucket AND o.key = given.key"
    " AND split_part(o.variant, '#', 1) = given.query"
    " UNION SELECT o.id, o.blob_id FROM brain_cachedobject o WHERE o.tags && %(tags)s),"
    " freed AS (SELECT b.sha256, b.size FROM brain_blob b"
    " WHERE b.sha256 IN (SELECT blob_id FROM hit) AND NOT EXISTS (SELECT FROM brain_cachedobject c"
    " WHERE c.blob_id = b.sha256 AND c.id NOT IN (SELECT id FROM hit)))"
    " SELECT (SELECT count(*) FROM hit) AS objects, coalesce(sum(f.size), 0)::bigint AS bytes,"
    " count(DISTINCT l.node_id) AS nodes"
    " FROM freed f JOIN brain_location l ON l.blob_id = f.sha256"
)


@dataclass(frozen=True, slots=True)
class Targets:
    """The keys and prefixes to purge, each with the id of its bucket.

    queries: keys with the query of a URL. tags: as they are stored.
    """

    keys: dict[int, list[str]]
    prefixes: list[tuple[int, str]]
    queries: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    tags: dict[int, list[str]] = field(default_factory=dict)

    @property
    def buckets(self) -> set[int]:
        prefixed = (bucket_id for bucket_id, _ in self.prefixes)
        return {*self.keys, *self.queries, *self.tags, *prefixed}


@dataclass(frozen=True, slots=True)
class PendingPurge:
    """A purge of a prefix, or by tags, with a second step: a row of PurgeRecord."""

    id: int
    bucket_id: int
    generation: int
    pattern: str
    tags: list[str] | None = None


class PurgeCount:
    """The counts of a purge so far."""

    def __init__(self) -> None:
        self.objects = 0
        self.bytes = 0
        self.nodes: set[UUID] = set()

    def add(self, objects: int, released: commits.FreedSpace) -> None:
        self.objects += objects
        self.bytes += released.bytes
        self.nodes |= released.nodes

    def result(self) -> PurgeResult:
        return PurgeResult(self.objects, self.bytes, len(self.nodes))


class Purges:
    def __init__(
        self, database: BrainDatabase, coherence: Coherence, domains: Sequence[str] = ()
    ) -> None:
        """domains: host names of the object API."""
        self._domains = domains
        # Purges of this brain whose second step is running; garbage collection skips them.
        self.active: set[int] = set()
        self._database = database
        self._coherence = coherence
        self._running: set[asyncio.Task[Any]] = set()

    async def purge(
        self,
        tenant: EnvironmentKey,
        *,
        keys: Sequence[str] = (),
        prefix: str = "",
        tags: Sequence[str] = (),
        everything: bool = False,
        preview: bool = False,
    ) -> PurgeResult:
        """Purge ``bucket/key`` names or URLs, those under a prefix, those with a tag, or all.

        ``bucket/key?query`` is what the cache keeps of one query, and a key with a question mark.
        tags: each ``bucket/tag``.
        What is named is a union, which is checked whole before anything is purged.
        preview: only count. Continues when the caller is cancelled.
        Raises Invalid, NoSuchBucket, DatabaseUnavailable.
        """
        targets = await self._targets(tenant, keys, prefix, tags, everything=everything)
        if not targets.buckets:
            return PurgeResult(0, 0, 0)
        if preview:
            return await self._preview(targets)
        task = asyncio.create_task(self._purge(targets))
        self._running.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    async def stop(self) -> None:
        await asyncio.gather(*self._running, return_exceptions=True)

    async def hide_everywhere(self, targets: Targets, count: PurgeCount) -> list[PendingPurge]:
        """Hide everything in all brains; keys are counted already, prefixes are finished later.

        Raises NoSuchBucket, DatabaseUnavailable.
        """
        pending: list[PendingPurge] = []
        try:
            async with self._coherence.transaction(timeout_s=STEP_TIMEOUT_S) as change:
                await commits.lock_buckets(change, targets.buckets)
                for bucket_id, keys in targets.keys.items():
                    gone, released = await commits.forget_keys(change, bucket_id, keys)
                    count.add(gone, released)
                for bucket_id, names in targets.queries.items():
                    given, queries = zip(*names, strict=True)
                    gone, released = await commits.forget_keys(change, bucket_id, given, queries)
                    count.add(gone, released)
                pending = await self._record(change, targets)
                done = [each for each in pending if await self._hide_tagged(change, each, count)]
        except BaseException:
            # It may be committed all the same: garbage collection then finishes it.
            self.active -= {record.id for record in pending}
            raise
        self.active -= {record.id for record in done}
        return [record for record in pending if record not in done]

    async def delete_hidden(self, pending: PendingPurge, count: PurgeCount) -> None:
        """Delete a purged prefix's objects, in steps.

        Raises DatabaseUnavailable: garbage collection continues.
        """
        is_last = False
        while not is_last:
            async with self._coherence.transaction(
                wait_for_acks=False, timeout_s=STEP_TIMEOUT_S
            ) as change:
                is_last = await self._step(change, pending, count)

    async def _purge(self, targets: Targets) -> PurgeResult:
        count = PurgeCount()
        try:
            pending = await self.hide_everywhere(targets, count)
        except NoSuchBucket:
            # The bucket was deleted with all its objects.
            return count.result()
        try:
            for record in pending:
                await self.delete_hidden(record, count)
        finally:
            self.active -= {record.id for record in pending}
        return count.result()

    async def _record(self, change: AnnouncingTransaction, targets: Targets) -> list[PendingPurge]:
        if not targets.prefixes and not targets.tags:
            return []
        generation, brain_id = await commits.next_generation(change), self._coherence.brain_id
        rows = await change.all(
            RECORD,
            {
                "generation": generation,
                "brain": brain_id,
                "buckets": [bucket_id for bucket_id, _ in targets.prefixes],
                "patterns": [pattern for _, pattern in targets.prefixes],
            },
        )
        for bucket_id, tags in targets.tags.items():
            rows += await change.all(RECORD_TAGS, [bucket_id, generation, tags, brain_id])
        pending = [PendingPurge(*row) for row in rows]
        self.active |= {record.id for record in pending}
        for record in pending:
            if record.tags is None:
                change.announce("prefix", record.bucket_id, record.pattern, record.generation)
        return pending

    async def _hide_tagged(
        self, change: AnnouncingTransaction, pending: PendingPurge, count: PurgeCount
    ) -> bool:
        """Hide what has some tags; True if these were few, and are deleted."""
        if pending.tags is None:
            return False
        bucket_id, generation = pending.bucket_id, pending.generation
        limit = commits.KEYS_LOCKED + 1
        await change.run(commits.BY_INDEX)
        rows = await change.all(TAGGED, [pending.tags, generation, limit])
        if len(rows) == limit:
            # Caches may always forget more.
            change.announce("prefix", bucket_id, "", generation)
            return False
        commits.announce_keys(change, bucket_id, sorted({row.key for row in rows}), generation)
        # A fetch that is running may get one of these tags.
        change.announce("fetches", bucket_id)
        return await self._step(change, pending, count)

    async def _step(
        self, change: AnnouncingTransaction, pending: PendingPurge, count: PurgeCount
    ) -> bool:
        # One purge of a bucket deletes at a time: two would wait for each other's rows.
        await change.run("SELECT pg_advisory_xact_lock(hashint8(%s), 0)", [pending.bucket_id])
        if pending.tags is not None:
            await change.run(commits.BY_INDEX)
        row = await change.one(
            STEP if pending.tags is None else TAGGED_STEP,
            {
                "bucket": pending.bucket_id,
                "prefix": pending.pattern,
                "last": pending.pattern + LAST,
                "tags": pending.tags,
                "generation": pending.generation,
                "limit": STEP_ROWS,
            },
        )
        if row is not None and row.hit:
            count.add(row.gone, await commits.release_packed(change, row.packed))
        if row is not None and row.hit == STEP_ROWS:
            return False
        await change.run("UPDATE brain_purgerecord SET is_done = true WHERE id = %s", [pending.id])
        change.announce("released")
        return True

    async def _preview(self, targets: Targets) -> PurgeResult:
        named = [(bucket_id, key) for bucket_id, keys in targets.keys.items() for key in keys]
        asked = [(each, *name) for each, names in targets.queries.items() for name in names]
        async with self._database.transaction(timeout_s=STEP_TIMEOUT_S) as connection:
            row = await connection.one(
                PREVIEW,
                {
                    "buckets": [bucket_id for bucket_id, _ in targets.prefixes],
                    "patterns": [pattern for _, pattern in targets.prefixes],
                    "key_buckets": [bucket_id for bucket_id, _ in named],
                    "keys": [key for _, key in named],
                    "query_buckets": [bucket_id for bucket_id, _, _ in asked],
                    "query_keys": [key for _, key, _ in asked],
                    "queries": [query for _, _, query in asked],
                    "tags": [tag for tags in targets.tags.values() for tag in tags],
                    "last": LAST,
                },
            )
        return PurgeResult(0, 0, 0) if row is None else PurgeResult(*row)

    async def _targets(
        self,
        tenant: EnvironmentKey,
        keys: Sequence[str],
        prefix: str,
        tags: Sequence[str],
        *,
        everything: bool,
    ) -> Targets:
        names = await PastedNames.of(self._database, tenant, self._domains)
        if everything:
            return Targets({}, [(bucket.id, "") for bucket in names.buckets.values()])
        return _targets(*names.read(keys, [prefix] if prefix else [], tags))

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            log.warning("purge_failed", reason=reason(failure))


def _targets(
    keys: Sequence[PastedName], prefixes: Sequence[PastedName], tags: Sequence[PastedName]
) -> Targets:
    """Return what to purge.

    A key with a question mark may be an object's, or a URL with its query.
    """
    whole: dict[int, dict[str, None]] = {}
    queries: dict[int, dict[tuple[str, str], None]] = {}
    for name in keys:
        key, query = name.key, name.query
        if not name.path:
            whole.setdefault(name.bucket.id, {})[key] = None
            key, _, query = key.partition("?")
        elif not query:
            whole.setdefault(name.bucket.id, {})[key] = None
        if query:
            queries.setdefault(name.bucket.id, {})[key, query_name(query)] = None
    tagged: dict[int, dict[str, None]] = {}
    for name in tags:
        tagged.setdefault(name.bucket.id, {})[stored_tag(name.bucket.id, name.key)] = None
    return Targets(
        {bucket_id: list(names) for bucket_id, names in whole.items()},
        [(name.bucket.id, name.key) for name in prefixes],
        {bucket_id: list(names) for bucket_id, names in queries.items()},
        {bucket_id: list(names) for bucket_id, names in tagged.items()},
    )
