"""The rows with small bodies, and those that say where a store has another one.

Small bodies are written in the transaction that refers to the blob and holds its lock
(``commits.hold_blob``), whatever the store is. Others are durable in a store before that, under a
name that is new and used once. Names without a row are found by listing.
"""

import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from edgecache.brain.core.errors import StoreUnavailable
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db.coherence import AnnouncingTransaction
from edgecache.brain.db.database import BrainDatabase, DatabaseTransaction

# Bodies up to this size are rows.
SMALL_BYTES: Final = 16 * 2**10
NAME_BYTES: Final = 16
CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# A name without a row is deleted after STRAY_AFTER_S; a write that took longer than this fails.
FRESH_S: Final = 6 * 3600
STRAY_AFTER_S: Final = 24 * 3600
OBJECTS: Final = "objects"
PARTS: Final = "parts"

WRITE_SMALL: Final = (
    "INSERT INTO brain_smallbody (blob_id, body)"
    " SELECT * FROM unnest(%b::bytea[], %b::bytea[]) given (blob_id, body) ORDER BY blob_id"
    " ON CONFLICT DO NOTHING"
)
SMALL: Final = "SELECT blob_id, body FROM brain_smallbody WHERE blob_id = ANY(%b)"
# The environment may have these bytes already. The new ones are certainly right, unlike those.
RECORD: Final = (
    "WITH given AS (SELECT * FROM"
    " unnest(%s::bigint[], %s::bigint[], %b::bytea[], %s::integer[], %s::text[])"
    " given (organization_id, environment_pk, blob_id, store_id, name)),"
    " chosen AS (SELECT DISTINCT ON (blob_id, organization_id, environment_pk) * FROM given),"
    " old AS (SELECT l.store_id, l.name FROM given"
    " JOIN brain_storedblob l USING (blob_id, organization_id, environment_pk)),"
    " made AS (INSERT INTO brain_storedblob"
    " (organization_id, environment_pk, blob_id, store_id, name)"
    " SELECT * FROM chosen ORDER BY blob_id"
    " ON CONFLICT (blob_id, organization_id, environment_pk) DO UPDATE"
    " SET store_id = EXCLUDED.store_id, name = EXCLUDED.name, stored_at = now())"
    " INSERT INTO brain_discardedbytes (store_id, name) SELECT store_id, name FROM old"
    " UNION SELECT store_id, name FROM given WHERE name NOT IN (SELECT name FROM chosen)"
    " ON CONFLICT DO NOTHING"
)
FIND: Final = (
    "SELECT blob_id, store_id, name FROM brain_storedblob"
    " WHERE organization_id = %s AND environment_pk = %s AND blob_id = ANY(%b)"
)
# For what no longer has an object with these bytes. The caller has locked the blobs, so that no new
# reference is made.
DROP_SMALL: Final = (
    "DELETE FROM brain_smallbody WHERE blob_id = ANY(%b) AND NOT EXISTS"
    " (SELECT FROM brain_storedobject s WHERE s.blob_id = brain_smallbody.blob_id)"
    " AND NOT EXISTS"
    " (SELECT FROM brain_noncurrentversion v WHERE v.blob_id = brain_smallbody.blob_id)"
)
DROP: Final = (
    "WITH gone AS (DELETE FROM brain_storedblob l WHERE l.blob_id = ANY(%s) AND NOT EXISTS"
    " (SELECT FROM brain_storedobject s JOIN brain_bucket b ON b.id = s.bucket_id"
    " WHERE s.blob_id = l.blob_id AND b.organization_id = l.organization_id"
    " AND b.environment_pk = l.environment_pk) AND NOT EXISTS"
    " (SELECT FROM brain_noncurrentversion v JOIN brain_bucket b ON b.id = v.bucket_id"
    " WHERE v.blob_id = l.blob_id AND b.organization_id = l.organization_id"
    " AND b.environment_pk = l.environment_pk) RETURNING l.store_id, l.name)"
    " INSERT INTO brain_discardedbytes (store_id, name) SELECT store_id, name FROM gone"
)

DELETE_PARTS: Final = (
    "WITH gone AS (DELETE FROM brain_uploadpart WHERE upload_id = ANY(%s)"
    " RETURNING store_id, file)"
    " INSERT INTO brain_discardedbytes (store_id, name) SELECT store_id, file FROM gone"
)


class BlobLocation(NamedTuple):
    """The store and the name under which a blob is kept."""

    store_id: int
    name: str


class NewBlob(NamedTuple):
    """Bytes that were written to a store for an environment. began: when, by ``clock``."""

    tenant: EnvironmentKey
    sha256: bytes
    at: BlobLocation
    began: float


def new_name(tag: str, tenant: EnvironmentKey, kind: str) -> str:
    """Return a new name for bytes of an environment. kind: OBJECTS or PARTS."""
    name = secrets.token_hex(NAME_BYTES)
    return f"{tag}/{tenant.organization_id}/{tenant.environment_pk}/{kind}/{name[:2]}/{name}"


def clock() -> float:
    """Return seconds that also count while the machine sleeps."""
    return time.clock_gettime(CLOCK)


def check_fresh(began: float) -> None:
    """Check that garbage collection cannot have taken new bytes for a crash's.

    Raises StoreUnavailable: this process was suspended.
    """
    if clock() - began > FRESH_S:
        raise StoreUnavailable("The write took too long; try again.")


async def write_small(change: DatabaseTransaction, bodies: Mapping[bytes, bytes]) -> None:
    """Write small bodies, by hash; ``hold_blob`` came before."""
    if bodies:
        await change.run(WRITE_SMALL, [[*bodies], [*bodies.values()]])


async def record(change: DatabaseTransaction, written: Sequence[NewBlob]) -> None:
    """Note where blobs are; ``hold_blob`` came before.

    Raises StoreUnavailable, DatabaseUnavailable.
    """
    if not written:
        return
    for each in written:
        check_fresh(each.began)
    await change.run(
        RECORD,
        [
            [each.tenant.organization_id for each in written],
            [each.tenant.environment_pk for each in written],
            [each.sha256 for each in written],
            [each.at.store_id for each in written],
            [each.at.name for each in written],
        ],
    )


async def small_bodies(database: BrainDatabase, blobs: Collection[bytes]) -> dict[bytes, bytes]:
    """Return the bodies of those blobs that are rows; unchecked. Raises DatabaseUnavailable."""
    rows = await database.all(SMALL, [list(blobs)]) if blobs else ()
    return {row.blob_id: row.body for row in rows}


async def find(
    database: BrainDatabase, tenant: EnvironmentKey, blobs: Collection[bytes]
) -> dict[bytes, BlobLocation]:
    """Return where stores have an environment's blobs. Raises DatabaseUnavailable."""
    rows = await database.all(FIND, [*tenant, list(blobs)]) if blobs else ()
    return {row.blob_id: BlobLocation(row.store_id, row.name) for row in rows}


async def drop_unneeded(change: AnnouncingTransaction, blobs: Sequence[bytes]) -> None:
    """Discard the bytes of blobs that no object needs, or no longer in some environment."""
    await change.run(DROP_SMALL, [list(blobs)])
    await change.run(DROP, [list(blobs)])
