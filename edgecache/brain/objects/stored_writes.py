"""Writes to the built-in origin: each with its conditions and its outcome.

Their bytes are durable by then, or few and written in the same transaction. Writes of a bucket that
wait while one of its transactions runs share the next one. The order is that of
all writes (``commits``): the bucket, keys, blobs, then the rows.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import psycopg

from edgecache.brain.core.errors import (
    BrainError,
    NoSuchBucket,
    PreconditionFailed,
    StoreUnavailable,
    TargetMissing,
    UploadBusy,
    UploadMissing,
)
from edgecache.brain.core.share_key import use_share_of_bucket
from edgecache.brain.core.shared_calls import SharedCalls
from edgecache.brain.core.values import (
    BlobManifest,
    BucketInfo,
    Conditions,
    Name,
    ObjectVersion,
    WrittenFields,
)
from edgecache.brain.db.coherence import AnnouncingTransaction
from edgecache.brain.db.database import Row
from edgecache.brain.directory import commits
from edgecache.brain.directory.versions import Directory
from edgecache.brain.objects import object_versions, upload_rows
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.managed import Placed
from edgecache.brain.stores.stored_blobs import NewBlob

# They fail one write and not the others of its group.
REFUSALS: Final = (
    PreconditionFailed,
    TargetMissing,
    UploadMissing,
    UploadBusy,
    StoreUnavailable,
)
# The keys have their locks: these rows do not change before the transaction ends.
# One look-up for each key (OFFSET 0), not a join.
CURRENT: Final = (
    "SELECT given.bucket_id, given.key, s.etag, s.blob_id, c.blob_id AS cached_id,"
    " v.variant IS NOT NULL AS has_variants"
    " FROM unnest(%b::bigint[], %b::text[]) given (bucket_id, key)"
    " LEFT JOIN LATERAL (SELECT etag, blob_id FROM brain_storedobject"
    " WHERE bucket_id = given.bucket_id AND key = given.key OFFSET 0) s ON true"
    " LEFT JOIN LATERAL (SELECT blob_id FROM brain_cachedobject"
    " WHERE bucket_id = given.bucket_id AND key = given.key AND variant = '' OFFSET 0) c ON true"
    " LEFT JOIN LATERAL (SELECT variant FROM brain_cachedobject"
    " WHERE bucket_id = given.bucket_id AND key = given.key AND variant > '' LIMIT 1) v ON true"
)
GENERATIONS: Final = (
    "SELECT nextval('brain_generation') AS generation, now() AS cached_at"
    " FROM generate_series(1, %s)"
)
# Both tables by one statement: of the built-in origin, and of the directory.
WRITE: Final = (
    "WITH given AS MATERIALIZED (SELECT bucket_id, key, decode(blob, 'hex') AS blob_id, etag,"
    " content_type, headers, metadata, checksums, parts, generation, tags, position"
    " FROM jsonb_to_recordset(%(rows)s::jsonb) given (bucket_id bigint, key text, blob text,"
    " etag text, content_type text, headers jsonb, metadata jsonb, checksums jsonb, parts jsonb,"
    " generation bigint, tags text[], position bigint)),"
    " stored AS (INSERT INTO brain_storedobject (bucket_id, key, blob_id, etag, content_type,"
    " headers, metadata, checksums, parts, position, last_modified) SELECT bucket_id, key, blob_id,"
    " etag, content_type, headers, metadata, checksums, parts, position, %(now)s FROM given"
    " ON CONFLICT (bucket_id, key) DO UPDATE SET blob_id = EXCLUDED.blob_id,"
    " etag = EXCLUDED.etag, content_type = EXCLUDED.content_type, headers = EXCLUDED.headers,"
    " metadata = EXCLUDED.metadata, checksums = EXCLUDED.checksums, parts = EXCLUDED.parts,"
    " position = EXCLUDED.position, last_modified = EXCLUDED.last_modified)"
    " INSERT INTO brain_cachedobject (bucket_id, key, blob_id, etag, content_type, headers,"
    " metadata, checksums, parts, generation, tags, last_modified, http, cached_at)"
    " SELECT bucket_id, key, blob_id, etag, content_type, headers, metadata, checksums, parts,"
    " generation, tags, %(now)s, '{}', now() FROM given"
    " ON CONFLICT (bucket_id, key, variant) DO UPDATE SET blob_id = EXCLUDED.blob_id,"
    " etag = EXCLUDED.etag, content_type = EXCLUDED.content_type, headers = EXCLUDED.headers,"
    " metadata = EXCLUDED.metadata, checksums = EXCLUDED.checksums, parts = EXCLUDED.parts,"
    " last_modified = EXCLUDED.last_modified, generation = EXCLUDED.generation,"
    " http = EXCLUDED.http, tags = EXCLUDED.tags, cached_at = EXCLUDED.cached_at"
)


@dataclass(eq=False, frozen=True, slots=True)
class Write:
    """A write. placed: its bytes, or where they are."""

    bucket: BucketInfo
    key: str
    manifest: BlobManifest
    placed: Placed
    fields: WrittenFields
    conditions: Conditions

    @property
    def name(self) -> Name:
        return self.bucket.id, self.key, ""


@dataclass(slots=True)
class Outcomes:
    """What became of some writes."""

    committed: dict[Write, ObjectVersion] = field(default_factory=dict)
    failed: dict[Write, Exception] = field(default_factory=dict)

    def all(self) -> dict[Write, ObjectVersion | Exception]:
        return {**self.committed, **self.failed}


class StoredWrites:
    """This brain's writes to the built-in origin."""

    def __init__(
        self, directory: Directory, *, on_stored: Callable[[BucketInfo, ObjectVersion], None]
    ) -> None:
        """on_stored: called with each version that was committed."""
        self._directory = directory
        self._on_stored = on_stored
        # What is written together: the writes of a bucket that wait.
        self._waiting: dict[int, list[Write]] = {}
        self._calls: SharedCalls[int, Mapping[Write, ObjectVersion | Exception]] = SharedCalls()

    async def put(self, write: Write) -> ObjectVersion:
        """Write an object's rows, or none of them. Continues when the caller is cancelled.

        Raises PreconditionFailed, TargetMissing (if_match), UploadMissing, UploadBusy,
        NoSuchBucket, StoreUnavailable, DatabaseUnavailable.
        """
        use_share_of_bucket(write.bucket)
        bucket_id = write.bucket.id
        self._waiting.setdefault(bucket_id, []).append(write)
        outcomes = await self._calls.share(bucket_id, lambda: self._write_waiting(bucket_id))
        outcome = outcomes[write]
        if isinstance(outcome, ObjectVersion):
            return outcome
        raise outcome

    async def _write_waiting(self, bucket_id: int) -> Mapping[Write, ObjectVersion | Exception]:
        """Write objects of one bucket: those of a key one after another, others together."""
        writes = self._waiting.pop(bucket_id)
        done: dict[Write, ObjectVersion | Exception] = {}
        while left := [write for write in writes if write not in done]:
            first = list({write.name: write for write in reversed(left)}.values())
            group = first[: commits.KEYS_LOCKED]
            found = await self._outcomes(group)
            if found is None:
                # One of them is wrong; it must not make the others fail.
                for write in group:
                    done |= await self._outcomes([write]) or {}
            else:
                done |= found
        return done

    async def _outcomes(
        self, writes: Sequence[Write]
    ) -> Mapping[Write, ObjectVersion | Exception] | None:
        """Commit writes; None if PostgreSQL refuses the values of one of several."""
        try:
            return await self._commit(writes)
        except psycopg.Error as exc:
            return None if len(writes) > 1 else {writes[0]: exc}
        except BrainError as exc:
            return dict.fromkeys(writes, exc)

    async def _commit(self, writes: Sequence[Write]) -> Mapping[Write, ObjectVersion | Exception]:
        with ExitStack() as stack:
            watches = {
                write: stack.enter_context(self._directory.watch(write.name)) for write in writes
            }
            async with self._directory.coherence.transaction(is_pipelined=True) as change:
                outcomes = await _write_all(change, writes)
            for write, found in outcomes.committed.items():
                self._directory.remember(found, watches[write])
                self._on_stored(write.bucket, found)
        return outcomes.all()


async def _write_all(change: AnnouncingTransaction, writes: Sequence[Write]) -> Outcomes:
    """Write objects of distinct keys of one bucket.

    Raises NoSuchBucket, DatabaseUnavailable, psycopg.Error: nothing is written.
    """
    outcomes = Outcomes()
    state = await _begin(change, writes)
    ready = [write for write in writes if await _is_ready(change, write, state, outcomes)]
    small = {w.manifest.sha256: w.placed for w in ready if isinstance(w.placed, bytes)}
    await stored_blobs.write_small(change, small)
    await stored_blobs.record(change, [w.placed for w in ready if isinstance(w.placed, NewBlob)])
    await _write_rows(change, ready, state, outcomes)
    for write in ready:
        if write.conditions.upload:
            await upload_rows.delete(change, write.conditions.upload)
    # Delete their rows, unless something else refers to these bytes.
    await commits.release(change, [write.manifest.sha256 for write in outcomes.failed])
    return outcomes


async def _is_ready(
    change: AnnouncingTransaction, write: Write, state: "_LockedState", outcomes: Outcomes
) -> bool:
    """True if a write can continue; otherwise add it to the outcomes."""
    row = state.current[write.name]
    try:
        if isinstance(write.placed, NewBlob):
            stored_blobs.check_fresh(write.placed.began)
        # Before its conditions: an upload that has ended may be why they do not hold.
        if write.conditions.upload:
            await upload_rows.lock(change, write.conditions.upload)
        check_conditions(row if row.etag is not None else None, write.conditions)
    except REFUSALS as exc:
        outcomes.failed[write] = exc
        return False
    return True


def check_conditions(current: Row | None, conditions: Conditions) -> None:
    """Check the conditions of a write. current: the object's row.

    Raises PreconditionFailed, TargetMissing.
    """
    if current is not None and conditions.if_none_match in {"*", current.etag}:
        raise PreconditionFailed
    if conditions.if_match is None:
        return
    if current is None:
        raise TargetMissing
    if conditions.if_match not in {"*", current.etag}:
        raise PreconditionFailed


@dataclass(frozen=True, slots=True)
class _LockedState:
    """The rows of the keys, the next generations, and the bucket's versioning."""

    current: Mapping[Name, Row]
    generations: Sequence[Row]
    versioning: str


async def _begin(change: AnnouncingTransaction, writes: Sequence[Write]) -> _LockedState:
    """Lock, hold the blobs and read the keys' rows, in this order but in one round trip.

    Raises NoSuchBucket.
    """
    manifests = {write.manifest.sha256: write.manifest for write in writes}
    bucket_id, keys = writes[0].bucket.id, [write.key for write in writes]
    await change.run(commits.BY_INDEX)
    locks, current, held, generations = await change.run_pipelined(
        (commits.LOCK_KEYS, [bucket_id, keys]),
        (CURRENT, [[bucket_id] * len(keys), keys]),
        commits.hold_statement(manifests.values()),
        (GENERATIONS, [len(writes)]),
    )
    if not locks:
        raise NoSuchBucket
    for row in held:
        manifests.pop(row.sha256, None)
    if manifests:
        await commits.hold_blobs(change, manifests.values())
    rows = {(row.bucket_id, row.key, ""): row for row in current}
    return _LockedState(rows, generations, locks[0].versioning)


async def _write_rows(
    change: AnnouncingTransaction, writes: Sequence[Write], state: _LockedState, outcomes: Outcomes
) -> None:
    if not writes:
        return
    now = datetime.now(UTC).replace(microsecond=0)
    columns = []
    keys = [write.key for write in writes]
    made = await object_versions.make_way(change, state.versioning, writes[0].bucket.id, keys)
    gone: set[bytes] = {*made.gone}
    for write, next_row in zip(writes, state.generations, strict=False):
        version = _version(write, now, made.ids.get(write.key, ""))
        generation, position = next_row.generation, made.positions.get(write.key, 0)
        columns.append(_columns(version) | {"generation": generation, "position": position})
        current = state.current[write.name]
        gone |= {current.blob_id, current.cached_id} - {None, version.manifest.sha256}
        if current.has_variants:
            gone |= await commits.forget_variants(change, write.bucket.id, write.key)
        change.announce("key", write.bucket.id, write.key, generation)
        outcomes.committed[write] = commits.version_of(
            version, generation=generation, cached_at=next_row.cached_at
        )
    await change.run(WRITE, {"rows": orjson.dumps(columns).decode(), "now": now})
    await commits.release_stored(change, gone)


def _version(write: Write, now: datetime, version_id: str) -> commits.VersionRow:
    manifest = write.manifest
    fields = object_versions.with_version_id(write.fields, version_id)
    etag = fields.etag or manifest.md5.hex()
    return commits.VersionRow(write.bucket.id, write.key, "", manifest, fields, etag, now, {})


def _columns(version: commits.VersionRow) -> dict[str, Any]:
    fields = version.fields
    return {
        "bucket_id": version.bucket_id,
        "key": version.key,
        "blob": version.manifest.sha256.hex(),
        "etag": version.etag,
        "content_type": fields.content_type,
        "headers": dict(fields.headers),
        "metadata": dict(fields.metadata),
        "checksums": dict(fields.checksums),
        "parts": fields.parts,
        "tags": version.tags,
    }
