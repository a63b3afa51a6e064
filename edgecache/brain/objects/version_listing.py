"""Pages of the versions and delete markers of a bucket: by key, of each key the newest first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from edgecache.brain.core.paging import LAST, after
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.objects.object_versions import marker_at

# The next version behind {key} and {position}, by an index step of each table; a group's keys are
# skipped, however many there are.
STEP: Final[LiteralString] = (
    "SELECT found.*, CASE WHEN %(delimiter)s <> ''"
    " AND strpos(substr(found.key, %(skip)s), %(delimiter)s) > 0"
    " THEN left(found.key, %(skip)s - 1 + strpos(substr(found.key, %(skip)s), %(delimiter)s)"
    " + length(%(delimiter)s) - 1) END AS grouped FROM ("
    "(SELECT s.id, s.key, s.position, true AS is_current FROM brain_storedobject s"
    " WHERE s.bucket_id = %(bucket)s AND s.key >= {key} AND s.key >= %(prefix)s"
    " AND s.key <= %(last)s AND (s.key > {key} OR s.position < {position})"
    " ORDER BY s.key LIMIT 1)"
    " UNION ALL (SELECT v.id, v.key, v.position, false FROM brain_noncurrentversion v"
    " WHERE v.bucket_id = %(bucket)s AND v.key = {key} AND v.position < {position}"
    " AND v.key >= %(prefix)s AND v.key <= %(last)s ORDER BY v.position DESC LIMIT 1)"
    " UNION ALL (SELECT v.id, v.key, v.position, false FROM brain_noncurrentversion v"
    " WHERE v.bucket_id = %(bucket)s AND v.key > {key}"
    " AND v.key >= %(prefix)s AND v.key <= %(last)s ORDER BY v.key, v.position DESC LIMIT 1)"
    ") found ORDER BY found.key, found.position DESC LIMIT 1"
)
LIST: Final[LiteralString] = (
    "WITH RECURSIVE walk AS ((SELECT first.*, 1 AS place FROM ("  # noqa: S608 - literals alone
    + STEP.replace("{key}", "%(after)s").replace("{position}", "%(position)s")
    + ") first) UNION ALL SELECT next.*, walk.place + 1 FROM walk, LATERAL ("
    + STEP.replace("{key}", "coalesce(walk.grouped || %(leap)s, walk.key)").replace(
        "{position}", "walk.position"
    )
    + ") next WHERE walk.place < %(limit)s)"
    " SELECT walk.key, walk.grouped, walk.position,"
    " coalesce(s.headers ->> 'x-amz-version-id', v.version_id, '') AS version_id, b.size,"
    " coalesce(s.etag, v.etag) AS etag, coalesce(s.last_modified, v.last_modified)"
    " AS last_modified, walk.is_current OR (NOT EXISTS (SELECT FROM brain_storedobject o"
    " WHERE o.bucket_id = %(bucket)s AND o.key = walk.key) AND walk.position ="
    " (SELECT max(position) FROM brain_noncurrentversion o"
    " WHERE o.bucket_id = %(bucket)s AND o.key = walk.key)) AS is_latest FROM walk"
    " LEFT JOIN brain_storedobject s ON walk.is_current AND s.id = walk.id"
    " LEFT JOIN brain_noncurrentversion v ON NOT walk.is_current AND v.id = walk.id"
    " LEFT JOIN brain_blob b ON b.sha256 = coalesce(s.blob_id, v.blob_id) ORDER BY walk.place"
)
NULL_POSITION: Final = (
    "SELECT position FROM brain_storedobject WHERE bucket_id = %s AND key = %s"
    " AND NOT headers ? 'x-amz-version-id' UNION ALL SELECT position"
    " FROM brain_noncurrentversion WHERE bucket_id = %s AND key = %s AND version_id = ''"
)


@dataclass(frozen=True, slots=True)
class ListedVersion:
    """One line. version_id: empty for the null version. size: None for a delete marker."""

    key: str
    position: int
    version_id: str
    size: int | None
    etag: str
    last_modified: datetime
    is_latest: bool

    @property
    def marker(self) -> str:
        """What continues a listing behind it, even when it is deleted; empty behind all others."""
        return self.version_id or (marker_at(self.position) if self.position else "")


@dataclass(frozen=True, slots=True)
class VersionPage:
    """A page. prefixes: the groups that the delimiter makes.

    last: the version at its end, or its key or group; None at the end of the bucket.
    """

    versions: tuple[ListedVersion, ...]
    prefixes: tuple[str, ...]
    last: ListedVersion | str | None


async def list_versions(
    database: BrainDatabase,
    bucket_id: int,
    *,
    prefix: str,
    start_after: str,
    position: int,
    delimiter: str,
    limit: int,
) -> VersionPage:
    """Return a page of versions, markers and groups behind a position of a key.

    position: 0 for none of that key's versions. Raises DatabaseUnavailable.
    """
    if limit <= 0:
        return VersionPage((), (), None)
    wanted = {
        "bucket": bucket_id,
        "prefix": prefix,
        "last": prefix + LAST,
        "after": after(prefix, start_after, delimiter),
        "position": position,
        "skip": len(prefix) + 1,
        "delimiter": delimiter,
        "leap": LAST,
        "limit": limit + 1,
    }
    rows = await database.all(LIST, wanted)
    page = [
        row.grouped
        or ListedVersion(
            row.key,
            row.position,
            row.version_id,
            row.size,
            row.etag,
            row.last_modified,
            row.is_latest,
        )
        for row in rows[:limit]
    ]
    return VersionPage(
        tuple(each for each in page if isinstance(each, ListedVersion)),
        tuple(each for each in page if not isinstance(each, ListedVersion)),
        page[-1] if len(rows) > limit else None,
    )


async def null_position(database: BrainDatabase, bucket_id: int, key: str) -> int:
    """Return the position of a key's null version, or 0. Raises DatabaseUnavailable."""
    row = await database.one(NULL_POSITION, [bucket_id, key] * 2)
    return 0 if row is None else int(row.position)
