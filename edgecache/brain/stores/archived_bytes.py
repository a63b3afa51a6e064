"""The bytes of stored objects for backups: list, locate and write them.

Runs in management commands, next to Django's models. Nothing here deletes or replaces bytes.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import psycopg

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import StoreMissing
from edgecache.brain.core.values import EnvironmentKey, Span
from edgecache.brain.disk.data_directory import objects_folder
from edgecache.brain.disk.syncing import make_folders
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.reachable_stores import TAG_BYTES, open_store

# Small bodies are rows of the database, and in its backup.
ALL: Final = (
    "SELECT DISTINCT encode(b.sha256, 'hex'), b.size FROM (SELECT blob_id FROM brain_storedobject"
    " UNION ALL SELECT blob_id FROM brain_noncurrentversion) s"
    " JOIN brain_blob b ON b.sha256 = s.blob_id WHERE NOT EXISTS"
    " (SELECT FROM brain_smallbody small WHERE small.blob_id = b.sha256) ORDER BY 1"
)
LOCATIONS: Final = (
    "SELECT encode(l.blob_id, 'hex'), s.name, l.name FROM brain_storedblob l"
    " JOIN brain_store s ON s.id = l.store_id WHERE l.blob_id = ANY(%s)"
)
# Each environment that has an object with the bytes, and none of them in a store yet.
WANTING: Final = (
    "SELECT DISTINCT encode(s.blob_id, 'hex'), k.organization_id, k.environment_pk"
    " FROM (SELECT bucket_id, blob_id FROM brain_storedobject"
    " UNION ALL SELECT bucket_id, blob_id FROM brain_noncurrentversion) s"
    " JOIN brain_bucket k ON k.id = s.bucket_id"
    " WHERE s.blob_id = ANY(%s) AND NOT EXISTS (SELECT FROM brain_storedblob l"
    " WHERE l.blob_id = s.blob_id AND l.organization_id = k.organization_id"
    " AND l.environment_pk = k.environment_pk)"
)
# Where an object's newest version is gone, the next one is current (``object_versions``).
PROMOTE: Final = (
    "WITH newest AS (SELECT DISTINCT ON (v.bucket_id, v.key) v.id, v.blob_id"
    " FROM brain_noncurrentversion v WHERE NOT EXISTS (SELECT FROM brain_storedobject s"
    " WHERE s.bucket_id = v.bucket_id AND s.key = v.key)"
    " ORDER BY v.bucket_id, v.key, v.position DESC),"
    " moved AS (DELETE FROM brain_noncurrentversion WHERE id IN"
    " (SELECT id FROM newest WHERE blob_id IS NOT NULL) RETURNING *)"
    " INSERT INTO brain_storedobject (bucket_id, key, position, blob_id, etag, content_type,"
    " headers, metadata, checksums, parts, last_modified)"
    " SELECT bucket_id, key, position, blob_id, etag, content_type, headers, metadata, checksums,"
    " parts, last_modified FROM moved"
)


class Bytes(NamedTuple):
    """Bytes of objects. sha256: in hexadecimal digits."""

    sha256: str
    size: int


class BytesLocation(NamedTuple):
    store: str
    name: str


def all_bytes(connection: psycopg.Connection) -> Iterator[Bytes]:
    """Return the bytes of every stored object, each once."""
    with connection.cursor() as cursor:
        for row in cursor.stream(ALL):
            yield Bytes(*row)


def locations(connection: psycopg.Connection, found: Sequence[Bytes]) -> dict[str, BytesLocation]:
    """Return where bytes are that are in a store."""
    digests = [bytes.fromhex(each.sha256) for each in found]
    rows = connection.execute(LOCATIONS, [digests]).fetchall()
    return {sha256: BytesLocation(store, name) for sha256, store, name in rows}


class Sources:
    """Reads bytes from wherever the platform keeps them."""

    def __init__(self, data_dir: Path, configured: Sequence[StoreSettings]) -> None:
        self._stores = {each.name: open_store(each, data_dir) for each in configured}

    async def close(self) -> None:
        """Close the stores' connections."""
        for store in self._stores.values():
            if store is not None:
                await store.close()

    async def copy(self, wanted: Bytes, location: BytesLocation | None, target: Path) -> bool:
        """Write bytes to a file; False if they are missing or wrong.

        Raises StoreUnavailable.
        """
        store = None if location is None else self._stores.get(location.store)
        if location is None or store is None:
            return False
        try:
            with target.open("wb") as opened:
                async for piece in store.read(location.name, Span(0, wanted.size)):
                    opened.write(piece)
        except StoreMissing:
            return False
        return await asyncio.to_thread(_sha256_of, target) == wanted.sha256


class BytesRestore:
    """Writes restored bytes to the first of the configured stores."""

    def __init__(self, data_dir: Path, configured: Sequence[StoreSettings]) -> None:
        self._data_dir = data_dir
        self._chosen = configured[0]
        self._store = open_store(self._chosen, data_dir)
        self._id, self._tag = 0, ""

    def prepare(self, connection: psycopg.Connection) -> None:
        """Add the stores' rows. Tags are new: the former platform may use the same stores."""
        make_folders([self._data_dir, objects_folder(self._data_dir)])
        connection.execute(
            "INSERT INTO brain_store (name, tag, is_active) VALUES (%s, %s, true)"
            " ON CONFLICT (name) DO NOTHING",
            [self._chosen.name, secrets.token_hex(TAG_BYTES)],
        )
        row = connection.execute(
            "SELECT id, tag FROM brain_store WHERE name = %s", [self._chosen.name]
        ).fetchone()
        self._id, self._tag = row if row is not None else (0, "")

    def missing(
        self, connection: psycopg.Connection, found: Sequence[Bytes]
    ) -> dict[str, list[EnvironmentKey]]:
        """Return the bytes that still have to be written, by hash, and for which environments."""
        digests = [bytes.fromhex(each.sha256) for each in found]
        wanting: dict[str, list[EnvironmentKey]] = {}
        for sha256, organization_id, environment_pk in connection.execute(WANTING, [digests]):
            wanting.setdefault(sha256, []).append(EnvironmentKey(organization_id, environment_pk))
        return wanting

    async def close(self) -> None:
        """Close the store's connections."""
        if self._store is not None:
            await self._store.close()

    async def write(
        self, found: Bytes, body: Path, tenants: Sequence[EnvironmentKey]
    ) -> list[tuple[EnvironmentKey, str]]:
        """Write a file's bytes durably; return the names to ``record``.

        Raises StoreUnavailable.
        """
        written = []
        for tenant in tenants:
            name = stored_blobs.new_name(self._tag, tenant, stored_blobs.OBJECTS)
            await self._store.put(name, body, found.size)
            written.append((tenant, name))
        return written

    def record(
        self,
        connection: psycopg.Connection,
        sha256: str,
        written: Sequence[tuple[EnvironmentKey, str]],
    ) -> None:
        for tenant, name in written:
            connection.execute(
                "INSERT INTO brain_storedblob (organization_id, environment_pk, blob_id, store_id,"
                " name) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [
                    *tenant,
                    bytes.fromhex(sha256),
                    self._id,
                    name,
                ],
            )


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def forget_cached(connection: psycopg.Connection, absent: Sequence[str]) -> int:
    """Delete cached bytes, and objects whose bytes are not in the backup; return their number."""
    digests = [bytes.fromhex(sha256) for sha256 in absent]
    gone = connection.execute("DELETE FROM brain_storedobject WHERE blob_id = ANY(%s)", [digests])
    older = connection.execute(
        "DELETE FROM brain_noncurrentversion WHERE blob_id = ANY(%s)", [digests]
    )
    connection.execute(PROMOTE)
    connection.execute(
        "DELETE FROM brain_smallbody b WHERE NOT EXISTS"
        " (SELECT FROM brain_storedobject s WHERE s.blob_id = b.blob_id) AND NOT EXISTS"
        " (SELECT FROM brain_noncurrentversion v WHERE v.blob_id = b.blob_id)"
    )
    connection.execute(
        "DELETE FROM brain_blob b WHERE NOT EXISTS"
        " (SELECT FROM brain_storedobject s WHERE s.blob_id = b.sha256) AND NOT EXISTS"
        " (SELECT FROM brain_noncurrentversion v WHERE v.blob_id = b.sha256)"
    )
    return gone.rowcount + older.rowcount
