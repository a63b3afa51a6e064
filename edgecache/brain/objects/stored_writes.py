"""Writes to the built-in origin inside one transaction: each with its conditions and its outcome.

The order is that of all writes (``commits``): buckets, keys, blobs; then the bytes become durable;
then the rows that name them are written.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from edgecache.brain.core.errors import (
    OriginMissing,
    PreconditionFailed,
    StoreUnavailable,
    UploadMissing,
)
from edgecache.brain.core.values import (
    BucketInfo,
    Conditions,
    Name,
    ObjectVersion,
    StagedFile,
    WrittenFields,
)
from edgecache.brain.db.coherence import AnnouncingTransaction
from edgecache.brain.db.database import Row
from edgecache.brain.directory import commits
from edgecache.brain.disk.buffers import BufferedBody
from edgecache.brain.disk.durable_bytes import DurableBytes, is_journaled
from edgecache.brain.objects import upload_rows
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.stored_blobs import NewBlob

# The keys have their locks: these rows do not change before the transaction ends.
# A plan is kept, for tables that may have been small when it was made: look-ups by index even then.
BY_INDEX: Final = "SET LOCAL enable_seqscan = off"
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
    " content_type, headers, metadata, checksums, parts, generation"
    " FROM jsonb_to_recordset(%(rows)s::jsonb) given (bucket_id bigint, key text, blob text,"
    " etag text, content_type text, headers jsonb, metadata jsonb, checksums jsonb, parts jsonb,"
    " generation bigint)),"
    " stored AS (INSERT INTO brain_storedobject (bucket_id, key, blob_id, etag, content_type,"
    " headers, metadata, checksums, parts, last_modified) SELECT bucket_id, key, blob_id, etag,"
    " content_type, headers, metadata, checksums, parts, %(now)s FROM given"
    " ON CONFLICT (bucket_id, key) DO UPDATE SET blob_id = EXCLUDED.blob_id,"
    " etag = EXCLUDED.etag, content_type = EXCLUDED.content_type, headers = EXCLUDED.headers,"
    " metadata = EXCLUDED.metadata, checksums = EXCLUDED.checksums, parts = EXCLUDED.parts,"
    " last_modified = EXCLUDED.last_modified)"
    " INSERT INTO brain_cachedobject (bucket_id, key, blob_id, etag, content_type, headers,"
    " metadata, checksums, parts, generation, last_modified, http, cached_at)"
    " SELECT given.*, %(now)s, '{}', now() FROM given"
    " ON CONFLICT (bucket_id, key, variant) DO UPDATE SET blob_id = EXCLUDED.blob_id,"
    " etag = EXCLUDED.etag, content_type = EXCLUDED.content_type, headers = EXCLUDED.headers,"
    " metadata = EXCLUDED.metadata, checksums = EXCLUDED.checksums, parts = EXCLUDED.parts,"
    " last_modified = EXCLUDED.last_modified, generation = EXCLUDED.generation,"
    " http = EXCLUDED.http, cached_at = EXCLUDED.cached_at"
)


@dataclass(eq=False, slots=True)
class Write:
    """A PUT. outcome: its version, or its failure. staged: its bytes on disk, once they are.

    stored: where a store has its bytes; the file on disk is then a copy, which may be lost.
    is_placed: they have left their temporary name, in a transaction that may have failed since.
    """

    bucket: BucketInfo
    key: str
    body: StagedFile | BufferedBody
    fields: WrittenFields
    conditions: Conditions
    outcome: asyncio.Future[ObjectVersion]
    stored: NewBlob | None = None
    staged: StagedFile | None = None
    is_placed: bool = False

    @property
    def is_journaled(self) -> bool:
        """True if its bytes are written in the transaction (``DurableBytes.write``)."""
        return self.stored is None and self.staged is None and is_journaled(self.body)

    @property
    def name(self) -> Name:
        """Return what at most one write at a time may change."""
        return self.bucket.id, self.key, ""


@dataclass(slots=True)
class Outcomes:
    """What became of some writes. contended: another transaction has their key or bucket now.

    parts: the files of parts that the objects were made of, to be removed after the commit.
    """

    committed: dict[Write, ObjectVersion] = field(default_factory=dict)
    failed: dict[Write, Exception] = field(default_factory=dict)
    contended: list[Write] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)


async def write_all(
    change: AnnouncingTransaction,
    store: DurableBytes,
    writes: Sequence[Write],
    *,
    wait_for_locks: bool,
) -> Outcomes:
    """Write objects of distinct keys. Their bytes are small, or in temporary files.

    wait_for_locks: for a single write. Otherwise writes whose locks are taken are left out, so that
    no write waits for another tenant's lock.

    Raises NoSuchBucket (with wait_for_locks), DatabaseUnavailable, psycopg.Error: nothing is
    written.
    """
    outcomes = Outcomes()
    if wait_for_locks:
        (one,) = writes
        await commits.lock_keys(change, one.bucket.id, [one.key])
    state = await _begin(change, writes)
    ready = [
        write
        for write in writes
        if await _is_ready(change, write, state, outcomes, wait_for_locks=wait_for_locks)
    ]
    durable = await _place(store, [write for write in ready if not write.stored], outcomes)
    durable += await _record(change, store, [write for write in ready if write.stored], outcomes)
    await _write_rows(change, durable, state, outcomes)
    for write in durable:
        if write.conditions.upload:
            outcomes.parts += await upload_rows.delete(change, write.conditions.upload)
    # Delete their rows, unless something else refers to these bytes.
    lost = [write.body.manifest.sha256 for write in writes if write not in outcomes.committed]
    await commits.release(change, lost)
    return outcomes


async def _is_ready(
    change: AnnouncingTransaction,
    write: Write,
    state: "_LockedState",
    outcomes: Outcomes,
    *,
    wait_for_locks: bool,
) -> bool:
    """True if a write can continue; otherwise add it to the outcomes."""
    row, upload = state.current.get(write.name), write.conditions.upload
    if write.name not in state.free or row is None:
        outcomes.contended.append(write)
        return False
    try:
        # Before its conditions: an upload that has ended may be why they do not hold.
        if upload and wait_for_locks:
            await upload_rows.lock(change, upload)
        elif upload and not await upload_rows.try_lock(change, upload):
            outcomes.contended.append(write)
            return False
        check_conditions(row if row.etag is not None else None, write.conditions)
    except (PreconditionFailed, OriginMissing, UploadMissing) as exc:
        outcomes.failed[write] = exc
        return False
    return True


def check_conditions(current: Row | None, conditions: Conditions) -> None:
    """Check the conditions of a write. current: the object's row.

    Raises PreconditionFailed, OriginMissing.
    """
    if conditions.if_none_match and current is not None:
        raise PreconditionFailed
    if conditions.if_match is None:
        return
    if current is None:
        raise OriginMissing
    if conditions.if_match not in {"*", current.etag}:
        raise PreconditionFailed


@dataclass(frozen=True, slots=True)
class _LockedState:
    """The keys with a free lock, the rows of all keys, and the next generations."""

    free: Collection[Name]
    current: Mapping[Name, Row]
    generations: Sequence[Row]


async def _begin(change: AnnouncingTransaction, writes: Sequence[Write]) -> _LockedState:
    """Lock, hold the blobs and read the keys' rows, in this order but in one round trip.

    The blobs' rows come before their files: while they are locked, garbage collection cannot delete
    a placed file.
    """
    manifests = {write.body.manifest.sha256: write.body.manifest for write in writes}
    ids, keys = [write.bucket.id for write in writes], [write.key for write in writes]
    await change.run(BY_INDEX)
    free, current, held, generations = await change.run_pipelined(
        (commits.TRY_LOCK_KEYS, [sorted(set(ids)), ids, keys]),
        (CURRENT, [ids, keys]),
        commits.hold_statement(manifests.values()),
        (GENERATIONS, [len(writes)]),
    )
    for row in held:
        manifests.pop(row.sha256, None)
    if manifests:
        await commits.hold_blobs(change, manifests.values())
    return _LockedState(
        {(row.id, row.key, "") for row in free},
        {(row.bucket_id, row.key, ""): row for row in current},
        generations,
    )


async def _place(store: DurableBytes, writes: Sequence[Write], outcomes: Outcomes) -> list[Write]:
    """Make bytes durable under their hashes; return the writes that succeeded."""
    small = [write for write in writes if write.is_journaled]
    others = [write for write in writes if not write.is_journaled]
    errors: list[Exception | None] = []
    if small:
        bodies = [write.body for write in small if isinstance(write.body, BufferedBody)]
        errors += await store.write(bodies)
    if others:
        errors += await store.place(
            [
                store.as_placed_file(write.body.manifest)
                if write.is_placed or not write.staged
                else write.staged
                for write in others
            ]
        )
    placed = []
    for write, error in zip([*small, *others], errors, strict=True):
        if error is None:
            write.is_placed = True
            placed.append(write)
        else:
            outcomes.failed[write] = error
    return placed


async def _record(
    change: AnnouncingTransaction, store: DurableBytes, writes: Sequence[Write], outcomes: Outcomes
) -> list[Write]:
    """Note where a store has the bytes; return the writes for which that is so."""
    fresh: dict[Write, NewBlob] = {}
    for write in writes:
        if write.stored is None:
            continue
        try:
            stored_blobs.check_fresh(write.stored.began)
        except StoreUnavailable as exc:
            outcomes.failed[write] = exc
        else:
            fresh[write] = write.stored
    await stored_blobs.record(change, [*fresh.values()])
    copies = [write for write in fresh if write.staged is not None and not write.is_placed]
    await store.keep_copies([write.staged for write in copies if write.staged is not None])
    for write in copies:
        write.is_placed = True
    return list(fresh)


async def _write_rows(
    change: AnnouncingTransaction, writes: Sequence[Write], state: _LockedState, outcomes: Outcomes
) -> None:
    if not writes:
        return
    now = datetime.now(UTC).replace(microsecond=0)
    columns = []
    gone: set[bytes] = set()
    for write, next_row in zip(writes, state.generations, strict=False):
        version, generation = _version(write, now), next_row.generation
        columns.append(_columns(version) | {"generation": generation})
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


def _version(write: Write, now: datetime) -> commits.VersionRow:
    manifest, fields = write.body.manifest, write.fields
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
    }
