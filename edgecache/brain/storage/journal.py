"""The journal of small bodies: many become durable by one write and one sync.

A body that is a file of its own takes a sync of the file and one of its folder before it may be
acknowledged. So small bodies are appended to the journal together, and that is synced; their files
are written without waiting, and synced later, many at a time (``Journal.sync``). Only then is
their part of the journal used again. What a power cut leaves of the files is mended from the
journal by the next process that finds it without its owner (``Journal.adopt``).

Segments are files that are overwritten when their time has come again: to sync what has its place
on the disk is several times cheaper. Each record has the mark of its turn, so that a reader stops
where an earlier turn's bytes begin. A body is read back only if it has its hash.
"""

import hashlib
import os
import secrets
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import structlog

from edgecache.brain.blocks import BLOCK_BYTES
from edgecache.brain.storage.syncing import sync_folder, write_whole

log = structlog.get_logger(__name__)

# Larger ones are synced in their own file: written twice they would cost more than a sync.
JOURNALED_BYTES: Final = BLOCK_BYTES
SEGMENT_BYTES: Final = 16 * 2**20
# A sync of so many files takes a second or two, and a start checks no more of them.
SEGMENT_RECORDS: Final = 2000
# When all are in use, bodies are synced in files of their own: writers slow down to the disk.
SEGMENTS: Final = 4
NAME: Final = "journal-"
MARK_BYTES: Final = 16
# Mark, SHA-256, size.
HEADER: Final = struct.Struct(f">{MARK_BYTES}s32sQ")
FILE_MODE: Final = 0o600

Body = tuple[bytes, bytes]
"""SHA-256 and bytes."""


class Journal:
    """One process's journal. Every method runs on a thread; several may at once."""

    def __init__(self, folder: Path, path_of: Callable[[bytes], Path]) -> None:
        """folder: of the segments, this process's own. path_of: where a hash has its file."""
        self._folder = folder
        self._path_of = path_of
        self._lock = threading.Lock()
        self._syncing = threading.Lock()
        self._current: _Segment | None = None
        self._closed: list[_Segment] = []
        self._free: list[_Segment] = []
        self._made = 0

    @property
    def is_pressed(self) -> bool:
        """True if segments are full: ``sync`` makes room."""
        return bool(self._closed)

    def append(self, bodies: Sequence[Body]) -> bool:
        """Make bodies durable and write their files; False if there is no room.

        Raises OSError: then none of them is to be acknowledged.
        """
        with self._lock:
            segment = self._with_room(bodies)
            if segment is None:
                return False
            try:
                segment.append(bodies)
            except OSError:
                # Its earlier records are good; what follows them is not.
                self._close()
                raise
            segment.writers += 1
        try:
            for sha256, data in bodies:
                self._write(sha256, data)
                segment.written.append(sha256)
        finally:
            with self._lock:
                segment.writers -= 1
        return True

    def sync(self) -> None:
        """Make the files of all bodies durable, and their segments free.

        Raises OSError: the bodies stay in the journal.
        """
        with self._syncing:
            with self._lock:
                if self._current is not None and self._current.position:
                    self._close()
                ready = [segment for segment in self._closed if not segment.writers]
            for segment in ready:
                self._sync(segment)
                with self._lock:
                    self._closed.remove(segment)
                    if segment.can_be_reused:
                        self._free.append(segment)
                if not segment.can_be_reused:
                    segment.remove()

    def end(self) -> None:
        """Make the files of all bodies durable, and remove the journal.

        Raises OSError: what is left must be adopted.
        """
        self.sync()
        for segment in self._free:
            segment.remove()

    def adopt(self, folder: Path) -> None:
        """Take over the journal of a process that has ended, and mend its files.

        Raises OSError.
        """
        for path in sorted(folder.glob(f"{NAME}*")):
            adopted = _Segment(self._folder / path.name, can_be_reused=False)
            for sha256, data in _records(path):
                self._mend(sha256, data)
                adopted.written.append(sha256)
            path.rename(adopted.path)
            sync_folder(self._folder)
            with self._lock:
                self._closed.append(adopted)

    def _with_room(self, bodies: Sequence[Body]) -> "_Segment | None":
        if self._current is not None and not self._current.has_room(bodies):
            self._close()
        if self._current is None:
            if self._free:
                self._current = self._free.pop()
                self._current.begin()
            elif self._made < SEGMENTS:
                self._current = _Segment.new(self._folder)
                self._made += 1
        return self._current

    def _close(self) -> None:
        if self._current is not None:
            self._closed.append(self._current)
            self._current = None

    def _write(self, sha256: bytes, data: bytes) -> None:
        target = self._path_of(sha256)
        path = self._folder / secrets.token_hex(16)
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
            try:
                write_whole(file, data)
            finally:
                os.close(file)
            self._rename(path, target)
        except OSError:
            path.unlink(missing_ok=True)
            raise

    @staticmethod
    def _rename(path: Path, target: Path) -> None:
        try:
            path.replace(target)
        except FileNotFoundError:
            target.parent.mkdir(exist_ok=True)
            sync_folder(target.parent.parent)
            path.replace(target)

    def _mend(self, sha256: bytes, data: bytes) -> None:
        try:
            if self._path_of(sha256).read_bytes() == data:
                return
        except FileNotFoundError:
            pass
        # Perhaps it was deleted: a file without a row is removed by the sweep.
        self._write(sha256, data)

    def _sync(self, segment: "_Segment") -> None:
        if segment.is_suspect:
            # After a failed sync the kernel may take what it lost for written.
            for sha256, data in _records(segment.path):
                if self._path_of(sha256).exists():
                    self._write(sha256, data)
        segment.is_suspect = True
        paths = [self._path_of(sha256) for sha256 in dict.fromkeys(segment.written)]
        # All are on their way to the disk before the first one is waited for.
        for step in (_begin_sync, os.fsync):
            for path in paths:
                _with_file(path, step)
        for folder in {path.parent for path in paths}:
            sync_folder(folder)
        segment.is_suspect = False


class _Segment:
    """A file of records. position: of the next one. written: hashes whose files were written.

    writers: that are writing files of its bodies. is_suspect: a sync of these files has failed.
    """

    def __init__(self, path: Path, *, can_be_reused: bool = True) -> None:
        self.path = path
        self.can_be_reused = can_be_reused
        self.position = 0
        self.written: list[bytes] = []
        self.writers = 0
        self.is_suspect = False
        self._records = 0
        self._mark = b""
        self._file = -1

    @classmethod
    def new(cls, folder: Path) -> "_Segment":
        """Return an empty segment whose name is durable. Raises OSError."""
        segment = cls(folder / f"{NAME}{secrets.token_hex(8)}")
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        segment._file = os.open(segment.path, flags, FILE_MODE)
        sync_folder(folder)
        sync_folder(folder.parent)
        segment.begin()
        return segment

    def begin(self) -> None:
        """Begin a turn: what is in the file is no longer valid once the first record is written."""
        self.position = self._records = 0
        self.written = []
        self._mark = secrets.token_bytes(MARK_BYTES)

    def has_room(self, bodies: Sequence[Body]) -> bool:
        """True if bodies fit."""
        size = sum(HEADER.size + len(data) for _, data in bodies)
        return (
            self.position + size <= SEGMENT_BYTES and self._records + len(bodies) <= SEGMENT_RECORDS
        )

    def append(self, bodies: Sequence[Body]) -> None:
        """Write records, and wait until they are durable. Raises OSError."""
        records = b"".join(
            part
            for sha256, data in bodies
            for part in (HEADER.pack(self._mark, sha256, len(data)), data)
        )
        os.lseek(self._file, self.position, os.SEEK_SET)
        write_whole(self._file, records)
        os.fdatasync(self._file)
        self.position += len(records)
        self._records += len(bodies)

    def remove(self) -> None:
        """Remove the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self.path.unlink(missing_ok=True)


def _records(path: Path) -> Iterator[Body]:
    """Yield the bodies of a segment's last turn, up to the first that is not whole."""
    with path.open("rb") as file:
        turn = None
        while len(header := file.read(HEADER.size)) == HEADER.size:
            mark, sha256, size = HEADER.unpack(header)
            turn = turn or mark
            if mark != turn or size > JOURNALED_BYTES:
                return
            data = file.read(size)
            if hashlib.sha256(data).digest() != sha256:
                return
            yield sha256, data


def _begin_sync(file: int) -> None:
    # Linux starts to write out what it is told to drop.
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def _with_file(path: Path, step: Callable[[int], object]) -> None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # Deleted since.
        return
    try:
        step(file)
    finally:
        os.close(file)
