"""The rows of a multipart upload: it ends once, by an abort or in the transaction of its object."""

import uuid
from contextlib import suppress
from typing import Final

from edgecache.brain.core.errors import UploadBusy, UploadMissing
from edgecache.brain.db.database import BrainDatabase, DatabaseTransaction
from edgecache.brain.stores import stored_blobs

# Waits for the parts that are being written, which hold the row.
LOCK: Final = "SELECT 1 FROM brain_upload WHERE id = %s FOR UPDATE"
TRY_LOCK: Final = LOCK + " SKIP LOCKED"
# A separate statement: it sees what was committed while the other one waited.
IS_WRITTEN: Final = "SELECT 1 FROM brain_pendingwrite WHERE write_id = %s"
DELETE: Final = "DELETE FROM brain_upload WHERE id = %s"
EXPIRED: Final = (
    "SELECT id FROM brain_upload WHERE created_at < now() - interval '7 days' AND id > %s"
    " ORDER BY id LIMIT %s"
)
# Pages of uploads that are removed in one go, and their size.
MAX_PAGES: Final = 100
MAX_EXPIRED: Final = 100


def write_id(upload_id: str) -> uuid.UUID:
    """Return the id of the write to an external origin that completes an upload."""
    return uuid.uuid5(uuid.NAMESPACE_OID, upload_id)


async def lock(connection: DatabaseTransaction, upload_id: str, *, waits: bool = True) -> None:
    """Prevent any other end of an upload until this transaction ends.

    Raises UploadMissing (without ``waits`` also while parts are being written), UploadBusy while a
    write to an origin completes it.
    """
    if await connection.one(LOCK if waits else TRY_LOCK, [upload_id]) is None:
        raise UploadMissing
    if await connection.one(IS_WRITTEN, [write_id(upload_id)]) is not None:
        raise UploadBusy


async def delete(connection: DatabaseTransaction, upload_id: str) -> None:
    """Delete an upload and its parts; their bytes are deleted soon after the commit.

    Call ``lock`` first; otherwise a part that gets its row concurrently would make the commit fail.
    """
    await connection.run(stored_blobs.DELETE_PARTS, [[upload_id]])
    await connection.run(DELETE, [upload_id])


async def remove(database: BrainDatabase, upload_id: str, *, waits: bool = True) -> None:
    """Delete an upload and its parts. Raises as ``lock`` does, and DatabaseUnavailable."""
    async with database.transaction() as connection:
        await lock(connection, upload_id, waits=waits)
        await delete(connection, upload_id)


async def remove_expired(database: BrainDatabase) -> None:
    """Delete the uploads that were not completed in a week, or many of them.

    Raises DatabaseUnavailable.
    """
    after = ""
    for _ in range(MAX_PAGES):
        rows = await database.all(EXPIRED, [after, MAX_EXPIRED])
        for row in rows:
            # Its client may be ending it, completing it or writing parts; garbage collection for
            # all tenants does not wait for that.
            with suppress(UploadMissing, UploadBusy):
                await remove(database, row.id, waits=False)
        if len(rows) < MAX_EXPIRED:
            return
        after = rows[-1].id
