"""The store's folders and files: named by hash alone, whole or not there at all.

DIR/lock                    held while a worker runs
DIR/inventory.sqlite3       see ``inventory``
DIR/incoming/               files that are not whole; emptied at every start
DIR/objects/ab/abcd…        a blob, named by its SHA-256, below its first two digits
"""

import errno
import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from edgecache.protocol.names import OBJECTS, object_file, parse_sha256
from edgecache.runtime.hot_cache import HotCache
from edgecache.runtime.verified_files import FileState, VerifiedFiles, state_of

INCOMING: Final = "incoming"
LOCK: Final = "lock"
FOLDER_MODE: Final = 0o750

# No room: the disk is full, the quota is used, or the file has the maximum size.
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class FolderInUse(Exception):
    """Another worker runs on this folder."""


class Files:
    """The files of one store."""

    def __init__(self, folder: Path) -> None:
        """Make the folders, take the lock, remove unfinished files of a worker that crashed.

        Raises FolderInUse, OSError.
        """
        self.folder = folder
        self.hot = HotCache()
        self.verified = VerifiedFiles()
        self._objects = folder / OBJECTS
        self._incoming = folder / INCOMING
        for made in (folder, self._objects, self._incoming):
            made.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        self._lock = _lock(folder / LOCK)
        for first in range(256):
            (self._objects / f"{first:02x}").mkdir(mode=FOLDER_MODE, exist_ok=True)
        sync_folder(self._objects)
        self.leftovers = self._remove_incoming()

    def path(self, sha256: bytes) -> str:
        """Return the path of a blob, whether it is there or not."""
        return f"{self._objects}/{object_file(sha256)}"

    def size(self, sha256: bytes) -> int | None:
        """Return the size of a blob's file; None when it is not there, or is not a plain file."""
        try:
            found = os.stat(self.path(sha256), follow_symlinks=False)  # noqa: PTH116 - hot path
        except FileNotFoundError:
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def cached(
        self, sha256: bytes, start: int, length: int, size: int, *, organization_id: int
    ) -> bytes | bytearray | None:
        """Return bytes of a blob that are in memory; None if its file must be read or verified.

        size: the whole blob's. organization_id: the reader's. It never blocks; only for the event
        loop's thread.
        """
        whole = self.hot.get(sha256)
        if whole is not None:
            return whole if length == size else whole[start : start + length]
        drops = self.hot.drops
        piece = self._in_page_cache(sha256, start, length, size)
        if piece is not None and length == size:
            self.hot.offer(sha256, piece, organization_id=organization_id, drops=drops)
        return piece

    def open(self, sha256: bytes) -> int:
        """Open a blob's file for reading. Raises FileNotFoundError, OSError."""
        return os.open(self.path(sha256), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def state(self, sha256: bytes) -> FileState | None:
        """Return the state of a blob's file, None if it is missing."""
        try:
            return state_of(self.path(sha256))
        except FileNotFoundError:
            return None

    def verify(self, sha256: bytes, *, rate_bytes: int | None = None) -> FileState | None:
        """Hash a blob's file, as ``VerifiedFiles.verify_path`` does."""
        return self.verified.verify_path(sha256, self.path(sha256), rate_bytes=rate_bytes)

    def _in_page_cache(self, sha256: bytes, start: int, length: int, size: int) -> bytearray | None:
        try:
            descriptor = self.open(sha256)
        except OSError:
            return None
        piece, began_ns = bytearray(length), time.time_ns()
        try:
            before = state_of(descriptor)
            count = os.preadv(descriptor, [piece], start, os.RWF_NOWAIT)
            state = state_of(descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        if count != length or state != before:
            return None
        if self.verified.knows(sha256, state):
            return piece
        if length != size or hashlib.sha256(piece).digest() != sha256:
            return None
        self.verified.note(sha256, state, began_ns=began_ns)
        return piece

    def create(self) -> tuple[BinaryIO, Path]:
        """Open a new file for bytes that are not whole yet."""
        path = self._incoming / secrets.token_hex(16)
        return path.open("xb", buffering=0), path

    def keep(self, incoming: Path, sha256: bytes) -> None:
        """Return a whole, synced file its name. ``sync`` the name afterwards."""
        self.hot.drop(sha256)
        incoming.rename(self.path(sha256))

    def sync(self, sha256: bytes) -> None:
        """Make a name durable."""
        sync_folder(Path(self.path(sha256)).parent)

    def unlink(self, sha256: bytes) -> None:
        """Remove a blob; open files of it remain readable."""
        Path(self.path(sha256)).unlink(missing_ok=True)
        self.hot.drop(sha256)

    def walk(self) -> Iterator[tuple[bytes, int]]:
        """Return hash and size of every blob; files with other names are skipped."""
        for first in range(256):
            with os.scandir(self._objects / f"{first:02x}") as entries:
                for entry in entries:
                    sha256 = parse_sha256(entry.name)
                    is_right = sha256 is not None and entry.name.startswith(f"{first:02x}")
                    if sha256 is not None and is_right and entry.is_file(follow_symlinks=False):
                        yield sha256, entry.stat(follow_symlinks=False).st_size

    def close(self) -> None:
        """Release the folder."""
        self._lock.close()

    def _remove_incoming(self) -> int:
        count = 0
        for path in self._incoming.iterdir():
            path.unlink()
            count += 1
        return count


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(path: Path) -> BinaryIO:
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise FolderInUse from error
    return lock
