"""Files that were verified, for as long as their inode, size and times are unchanged.

An edit changes a file's ctime, which no program can set; another file has another inode. Two edits
within one tick of the clock have the same ctime, so a verification is remembered only if the last
change was a second earlier. Not detected: corruption below the file system, and a program that
keeps writing through an earlier mapping.
"""

import errno
import hashlib
import os
import threading
import time
from typing import Final, NamedTuple

from edgecache.runtime.bounded_cache import BoundedCache

SETTLED_NS: Final = 10**9
PIECE_BYTES: Final = 1 << 20
# Each takes about 400 bytes.
MAX_FILES: Final = 65_536
ATTEMPTS: Final = 3
NO_FAULT_OF_THE_FILE: Final = frozenset({errno.EMFILE, errno.ENFILE})


class FileState(NamedTuple):
    """What changes when a file is altered or replaced."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


def state_of(file: int | str) -> FileState:
    """Return the state of an open file, or of the file at a path; links are not followed.

    Raises OSError.
    """
    found = os.fstat(file) if isinstance(file, int) else os.lstat(file)
    return FileState(
        found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    )


def is_settled(state: FileState, *, now_ns: int) -> bool:
    """True if a verification may begin now and be remembered: any edit will change the ctime."""
    return now_ns - state.ctime_ns >= SETTLED_NS


class VerifiedFiles:
    """The files of one process that were verified, least recently verified first out."""

    def __init__(self) -> None:
        self._hashes: BoundedCache[FileState, bytes] = BoundedCache(MAX_FILES)
        self._lock = threading.Lock()

    def knows(self, sha256: bytes, state: FileState) -> bool:
        """True if a file in this state has these bytes."""
        return self._hashes.peek(state) == sha256

    def verify_path(
        self, sha256: bytes, path: str, *, rate_bytes: int | None = None
    ) -> FileState | None:
        """Hash a file; return its state, None if it is missing or wrong. It blocks.

        A file that the disk cannot read counts as wrong. rate_bytes: maximum bytes read in a
        second.
        Raises OSError for a cause outside the file (too many open files).
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in NO_FAULT_OF_THE_FILE:
                raise
            return None
        try:
            return self.verify(sha256, descriptor, rate_bytes=rate_bytes)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def verify(
        self, sha256: bytes, descriptor: int, *, rate_bytes: int | None = None
    ) -> FileState | None:
        """Hash an open file as ``verify_path`` does; return its state, None if it is wrong.

        Raises OSError.
        """
        for _ in range(ATTEMPTS):
            began_ns = time.time_ns()
            state = state_of(descriptor)
            digest = _sha256(descriptor, rate_bytes)
            if state_of(descriptor) != state:
                # Perhaps it was only unlinked.
                continue
            if digest != sha256:
                return None
            self.note(sha256, state, began_ns=began_ns)
            return state
        return None

    def note(self, sha256: bytes, state: FileState, *, began_ns: int) -> None:
        """Remember a verification of all bytes that began then, unless the file was just changed.

        The state was the same before and after it.
        """
        if not is_settled(state, now_ns=began_ns):
            return
        with self._lock:
            self._hashes.put(state, sha256)


def _sha256(descriptor: int, rate_bytes: int | None) -> bytes:
    digest, position, began = hashlib.sha256(), 0, time.monotonic()
    while piece := os.pread(descriptor, PIECE_BYTES, position):
        digest.update(piece)
        position += len(piece)
        if rate_bytes:
            time.sleep(max(0.0, began + position / rate_bytes - time.monotonic()))
    return digest.digest()
