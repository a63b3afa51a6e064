"""Eviction of the brain's cached files, and removal of files without a row.

Files of external origins' objects may be removed at any time: nodes hold them, or the origin has
them. Those that nodes hold are removed first, the oldest of them before the others.
"""

import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.disk.removal import remove_files

log = structlog.get_logger(__name__)

# Shares of the limit: above the first files are evicted, down to the second.
FULL: Final = 0.9
ENOUGH: Final = 0.7
# Younger files may belong to a transaction that has not ended.
STRAY_AFTER_S: Final = 3600
PART_STRAY_AFTER_S: Final = 8 * 86_400
STEP: Final = 1000
SHA256_HEX: Final = 64

Held = Callable[[Sequence[bytes]], Awaitable[set[bytes]]]
Moved = Callable[[Sequence[bytes]], Awaitable[int]]


class File(NamedTuple):
    """A file. age: seconds since it was written."""

    path: Path
    size: int
    age: float


async def evict(data_directory: DataDirectory, held: Held) -> int:
    """Evict files if they and unfinished bodies fill the limit; return the bytes freed.

    held: returns those of some blobs that nodes hold. Raises DatabaseUnavailable.
    """
    limit = data_directory.limit_bytes
    if data_directory.used_bytes + data_directory.copies.bytes <= limit * FULL:
        return 0
    files = await data_directory.run(_files, data_directory.root / "blobs")
    files.sort(key=lambda file: -file.age)
    data_directory.copies.found(sum(file.size for file in files))
    wanted = data_directory.used_bytes + data_directory.copies.bytes - int(limit * ENOUGH)
    freed = 0
    left: list[File] = []
    for step in _steps(files):
        safe = await held([bytes.fromhex(file.path.name) for file in step])
        for file in step:
            if freed >= wanted:
                return freed
            if bytes.fromhex(file.path.name) not in safe:
                left.append(file)
                continue
            await data_directory.run(data_directory.unlink_copy, file.path)
            freed += file.size
    for file in left:
        if freed >= wanted:
            break
        await data_directory.run(data_directory.unlink_copy, file.path)
        freed += file.size
    log.info("brain_copies_evicted", freed_bytes=freed)
    return freed


async def sweep(data_directory: DataDirectory, database: BrainDatabase, moved: Moved) -> int:
    """Remove files without a row, left by crashes; return their number.

    moved: removes those of some blobs that a store has by now. Raises DatabaseUnavailable.
    """
    removed = 0
    for folder in ("origin", "blobs"):
        files = await data_directory.run(_files, data_directory.root / folder)
        for step in _steps([file for file in files if file.age > STRAY_AFTER_S]):
            removed += await _remove_unknown(data_directory, database, step)
            if folder == "origin":
                removed += await moved([bytes.fromhex(file.path.name) for file in step])
    parts = await data_directory.run(_files, data_directory.root / "parts")
    for step in _steps([file for file in parts if file.age > PART_STRAY_AFTER_S]):
        rows = await database.all(
            "SELECT file FROM brain_uploadpart WHERE file = ANY(%s)",
            [[file.path.name for file in step]],
        )
        known = {row.file for row in rows}
        for file in step:
            if file.path.name not in known:
                await data_directory.run(file.path.unlink, missing_ok=True)
                removed += 1
    return removed


async def _remove_unknown(
    data_directory: DataDirectory, database: BrainDatabase, files: Sequence[File]
) -> int:
    names = {bytes.fromhex(file.path.name): file for file in files}
    async with database.transaction(timeout_s=60) as connection:
        # A row of our own keeps others from referring to these bytes until we are done.
        rows = await connection.all(
            "INSERT INTO brain_blob (sha256, size, md5, crc32, chunks)"
            " SELECT sha256, 0, '', 0, '' FROM unnest(%s::bytea[]) sha256"
            " ON CONFLICT DO NOTHING RETURNING sha256",
            [sorted(names)],
        )
        await remove_files(data_directory, connection, [names[row.sha256].path for row in rows])
        await connection.run(
            "DELETE FROM brain_blob WHERE sha256 = ANY(%s)", [[row.sha256 for row in rows]]
        )
    return len(rows)


def _files(folder: Path) -> list[File]:
    now = time.time()
    return list(_walk(folder, now))


def _walk(folder: Path, now: float) -> Iterator[File]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), now)
                continue
            try:
                stat = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if folder.name == "parts" or len(entry.name) == SHA256_HEX:
                yield File(Path(entry.path), stat.st_size, now - stat.st_mtime)


def _steps(files: Sequence[File]) -> Iterator[Sequence[File]]:
    for start in range(0, len(files), STEP):
        yield files[start : start + STEP]
