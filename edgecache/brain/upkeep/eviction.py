"""Eviction of the brain's copies, and removal of files that nothing needs.

Copies may be removed at any time: nodes hold the bytes, or the origin or the store has them. Those
that nodes hold are removed first, the oldest of them before the others.
"""

import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.disk.data_directory import DataDirectory

log = structlog.get_logger(__name__)

# Shares of the limit: above the first files are evicted, down to the second.
FULL: Final = 0.9
ENOUGH: Final = 0.7
# Younger copies may belong to a transaction that has not ended, younger unfinished bodies to a
# request.
STRAY_AFTER_S: Final = 3600
UNFINISHED_AFTER_S: Final = 86_400
STEP: Final = 1000
SHA256_HEX: Final = 64
KNOWN: Final = "SELECT sha256 FROM brain_blob WHERE sha256 = ANY(%b)"

Held = Callable[[Sequence[bytes]], Awaitable[set[bytes]]]


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
    files = await data_directory.run(_copies, data_directory)
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


async def sweep(data_directory: DataDirectory, database: BrainDatabase) -> int:
    """Remove copies without a row, and unfinished bodies left by crashes; return their number.

    Raises DatabaseUnavailable.
    """
    removed = 0
    files = await data_directory.run(_copies, data_directory)
    for step in _steps([file for file in files if file.age > STRAY_AFTER_S]):
        names = {bytes.fromhex(file.path.name) for file in step}
        rows = await database.all(KNOWN, [list(names)])
        strays = names.difference(row.sha256 for row in rows)
        await data_directory.remove_copies(sorted(strays))
        removed += len(strays)
    for file in await data_directory.run(_files, data_directory.temp):
        if file.age > UNFINISHED_AFTER_S:
            await data_directory.run(file.path.unlink, missing_ok=True)
            removed += 1
    return removed


def _copies(data_directory: DataDirectory) -> list[File]:
    found = _files(data_directory.root / "blobs")
    return [file for file in found if len(file.path.name) == SHA256_HEX]


def _files(folder: Path) -> list[File]:
    now = time.time()
    return list(_walk(folder, now))


def _walk(folder: Path, now: float) -> Iterator[File]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), now)
                continue
            with suppress(FileNotFoundError):
                stat = entry.stat(follow_symlinks=False)
                yield File(Path(entry.path), stat.st_size, now - stat.st_mtime)


def _steps(files: Sequence[File]) -> Iterator[Sequence[File]]:
    for start in range(0, len(files), STEP):
        yield files[start : start + STEP]
