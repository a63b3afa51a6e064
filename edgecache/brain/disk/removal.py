"""Removal of blobs' files while the blobs' rows are locked, but not of files written since then.

A lock ends with its connection. This process notices that late: in the middle of its work, or while
a thread continues that cannot be stopped. Other processes may then write the same bytes and have
them acknowledged. Their file is another one, so a file is removed only if it is the one that
existed while the rows were certainly locked.
"""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from edgecache.brain.db.database import DatabaseTransaction
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.disk.syncing import sync_file, sync_folder

# A thread continues for this many files after the locks are lost.
STEP: Final = 100


class FileSnapshot(NamedTuple):
    """The state of a file. An inode's number may be reused, but not with the same time."""

    path: Path
    inode: int
    mtime_ns: int
    size: int


async def remove_files(
    data_directory: DataDirectory, connection: DatabaseTransaction, paths: Sequence[Path]
) -> None:
    """Remove the files of blobs whose rows a transaction has locked; some may not exist.

    Raises DatabaseUnavailable, psycopg.OperationalError: the locks are lost, and some files are
    left.
    """
    for start in range(0, len(paths), STEP):
        found = await data_directory.run(_snapshots, paths[start : start + STEP])
        # A result shows that the rows were still locked when the snapshots were taken.
        await connection.run("SELECT 1")
        await data_directory.run(_remove, data_directory, found)


def _snapshots(paths: Sequence[Path]) -> list[FileSnapshot]:
    return [seen for path in paths if (seen := _snapshot(path)) is not None]


def _snapshot(path: Path) -> FileSnapshot | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return FileSnapshot(path, found.st_ino, found.st_mtime_ns, found.st_size)


def _remove(data_directory: DataDirectory, files: Sequence[FileSnapshot]) -> None:
    for file in files:
        if _remove_same(file, data_directory.temp / secrets.token_hex(16)):
            data_directory.forget_copy(file.path, file.size)


def _remove_same(file: FileSnapshot, aside: Path) -> bool:
    """Remove a file if it is the one that was seen."""
    if _snapshot(file.path) != file:
        return False
    try:
        file.path.rename(aside)
    except FileNotFoundError:
        return False
    if _snapshot(aside) == file._replace(path=aside):
        aside.unlink()
        return True
    # Another process has replaced it: put it back durably, because its writer's sync may have
    # missed it.
    aside.replace(file.path)
    sync_file(file.path)
    sync_folder(file.path.parent)
    return False
