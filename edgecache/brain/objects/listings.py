"""Listings of the built-in origin's keys, in the order of their UTF-8 bytes."""

from typing import Final

from edgecache.brain.core.paging import LAST, after
from edgecache.brain.core.values import KeyPage, ListedObject
from edgecache.brain.db.database import BrainDatabase, Row

PLAIN: Final = (
    "SELECT s.key, NULL AS grouped, b.size, s.etag, s.last_modified"
    " FROM brain_storedobject s JOIN brain_blob b ON b.sha256 = s.blob_id"
    " WHERE s.bucket_id = %(bucket)s AND s.key > %(after)s AND s.key >= %(prefix)s"
    " AND s.key <= %(last)s ORDER BY s.key LIMIT %(limit)s"
)
# One index step for each key or group: a group's keys are skipped, however many there are.
STEP: Final = (
    "SELECT s.id, s.key, CASE WHEN strpos(substr(s.key, %(skip)s), %(delimiter)s) > 0"
    " THEN left(s.key, %(skip)s - 1 + strpos(substr(s.key, %(skip)s), %(delimiter)s)"
    " + length(%(delimiter)s) - 1) END AS grouped FROM brain_storedobject s"
    " WHERE s.bucket_id = %(bucket)s AND s.key <= %(last)s AND s.key > "
)
GROUPED: Final = (
    "WITH RECURSIVE walk AS ((SELECT found.*, 1 AS place FROM ("  # noqa: S608 - literals alone
    + STEP
    + "%(after)s AND s.key >= %(prefix)s ORDER BY s.key LIMIT 1) found)"
    " UNION ALL SELECT found.*, walk.place + 1 FROM walk, LATERAL ("
    + STEP
    + "coalesce(walk.grouped || %(leap)s, walk.key) ORDER BY s.key LIMIT 1) found"
    " WHERE walk.place < %(limit)s)"
    " SELECT walk.key, walk.grouped, b.size, s.etag, s.last_modified"
    " FROM walk JOIN brain_storedobject s ON s.id = walk.id"
    " JOIN brain_blob b ON b.sha256 = s.blob_id ORDER BY walk.place"
)


async def list_keys(
    database: BrainDatabase,
    bucket_id: int,
    *,
    prefix: str,
    start_after: str,
    delimiter: str,
    limit: int,
) -> KeyPage:
    """Return a page of at most ``limit`` keys and groups after ``start_after``.

    Raises DatabaseUnavailable.
    """
    if limit <= 0:
        return KeyPage((), (), None)
    wanted = {
        "bucket": bucket_id,
        "prefix": prefix,
        "last": prefix + LAST,
        "after": after(prefix, start_after, delimiter),
        "skip": len(prefix) + 1,
        "delimiter": delimiter,
        "leap": LAST,
        "limit": limit + 1,
    }
    async with database.long():
        rows = await database.all(GROUPED if delimiter else PLAIN, wanted)
    return page_of(rows, limit)


def page_of(rows: list[Row], limit: int) -> KeyPage:
    """Return the page of rows; there may be one row more than the limit."""
    page = rows[:limit]
    last = page[-1] if len(rows) > limit else None
    return KeyPage(
        tuple(
            ListedObject(r.key, r.size, r.etag, r.last_modified) for r in page if r.grouped is None
        ),
        tuple(r.grouped for r in page if r.grouped is not None),
        None if last is None else last.grouped or last.key,
    )
