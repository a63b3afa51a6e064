"""The rows that say where a store has a blob; every name is fresh and used once.

Order of a write: bytes durable under a new name, then the row, in the transaction that refers to
the blob and holds its lock (``commits.hold_blob``). Names without a row are found by listing.
"""

import secrets
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from edgecache.brain.core.errors import StoreUnavailable
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db.coherence import AnnouncingTransaction
from edgecache.brain.db.database import BrainDatabase, DatabaseTransaction

NAME_BYTES: Final = 16
CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# A name without a row is deleted after STRAY_AFTER_S; a write that took longer than this fails.
FRESH_S: Final = 6 * 3600
STRAY_AFTER_S: Final = 24 * 3600
OBJECTS: Final = "objects"
PARTS: Final = "parts"

# The environment may have these bytes already: then the new ones are not needed.
RECORD: Final = (
    "WITH given AS (SELECT * FROM"
    " unnest(%s::bigint[], %s::bigint[], %b::bytea[], %s::integer[], %s::text[])"
    " given (organization_id, environment_pk, blob_id, store_id, name)),"
    " made AS (INSERT INTO brain_storedblob"
    " (organization_id, environment_pk, blob_id, store_id, name)"
    " SELECT * FROM given ORDER BY blob_id ON CONFLICT DO NOTHING RETURNING name)"
    " INSERT INTO brain_discardedbytes (store_id, name) SELECT store_id, name FROM given"
    " WHERE name NOT IN (SELECT name FROM made)"
)
FIND: Final = (
    "SELECT store_id, name FROM brain_storedblob"
    " WHERE organization_id = %s AND environment_pk = %s AND blob_id = %s"
)
# Environments that no longer have an object with these bytes. The caller has locked the blobs, so
# that no new reference is made.
DROP: Final = (
    "WITH gone AS (DELETE FROM brain_storedblob l WHERE l.blob_id = ANY(%s) AND NOT EXISTS"
    " (SELECT FROM brain_storedobject s JOIN brain_bucket b ON b.id = s.bucket_id"
    " WHERE s.blob_id = l.blob_id AND b.organization_id = l.organization_id"
    " AND b.environment_pk = l.environment_pk) RETURNING l.store_id, l.name)"
    " INSERT INTO brain_discardedbytes (store_id, name) SELECT store_id, name FROM gone"
)

# Returns the files of the data directory, to be removed after the commit.
DELETE_PARTS: Final = (
    "WITH gone AS (DELETE FROM brain_uploadpart WHERE upload_id = ANY(%s)"
    " RETURNING store_id, file),"
    " discarded AS (INSERT INTO brain_discardedbytes (store_id, name)"
    " SELECT store_id, file FROM gone WHERE store_id IS NOT NULL)"
    " SELECT file FROM gone WHERE store_id IS NULL"
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


async def find(
    database: BrainDatabase | DatabaseTransaction, tenant: EnvironmentKey, sha256: bytes
) -> BlobLocation | None:
    """Return where a store has an environment's blob; None: it is a file of the data directory.

    Raises DatabaseUnavailable.
    """
    row = await database.one(FIND, [*tenant, sha256])
    return None if row is None else BlobLocation(*row)


async def drop_unneeded(change: AnnouncingTransaction, blobs: Sequence[bytes]) -> None:
    """Discard the bytes of blobs in environments that no longer have an object with them."""
    await change.run(DROP, [list(blobs)])
