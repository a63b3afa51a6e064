"""Segments of the journal: files of records that are reused.

fsync of already allocated blocks is several times cheaper. Each record has the random mark of the
segment's current use, so that a reader stops at records of an earlier use. A body is read back only
if it matches its hash.
"""

import contextlib
import hashlib
import os
import secrets
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from edgecache.brain.core.blocks import BLOCK_BYTES
from edgecache.brain.disk.syncing import FILE_MODE, sync_folder, write_whole

# Larger ones are synced in their own file: written twice they would cost more than a sync.
JOURNALED_BYTES: Final = BLOCK_BYTES
SEGMENT_BYTES: Final = 16 * 2**20
# A sync of this many files takes a second or two, and a start checks no more of them.
SEGMENT_RECORDS: Final = 2000
NAME: Final = "journal-"
MARK_BYTES: Final = 16
# The mark of a segment that no longer holds needed bodies.
NO_MARK: Final = bytes(MARK_BYTES)
# Mark, SHA-256, size.
HEADER: Final = struct.Struct(f">{MARK_BYTES}s32sQ")

Body = tuple[bytes, bytes]
"""SHA-256 and bytes."""


class Segment:
    """A file of records.

    position: where the next record begins.
    written: hashes of the bodies whose files were written.
    writers: how many threads write files of its bodies.
    is_suspect: a sync of these files has failed, or may have.
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
    def new(cls, folder: Path) -> "Segment":
        """Return an empty segment with a durable name. Raises OSError."""
        segment = cls(folder / f"{NAME}{secrets.token_hex(8)}")
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        segment._file = os.open(segment.path, flags, FILE_MODE)
        try:
            sync_folder(folder)
        except OSError:
            segment.remove()
            raise
        segment.begin()
        return segment

    def begin(self) -> None:
        """Begin a new use: the file's content is invalid once the first record is written."""
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
        parts = b"".join(
            part
            for sha256, data in bodies
            for part in (HEADER.pack(self._mark, sha256, len(data)), data)
        )
        os.lseek(self._file, self.position, os.SEEK_SET)
        write_whole(self._file, parts)
        os.fdatasync(self._file)
        self.position += len(parts)
        self._records += len(bodies)

    def clear(self) -> None:
        """Prevent a reader from restoring bodies, since their files may be deleted by then."""
        # If it fails, or a power cut undoes it, the bodies return as files without a row.
        with contextlib.suppress(OSError):
            os.pwrite(self._file, NO_MARK, 0)

    def remove(self) -> None:
        """Remove the file. Raises OSError."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self.path.unlink(missing_ok=True)


def records(path: Path) -> Iterator[Body]:
    """Yield the bodies of a segment's last use, up to the first incomplete one.

    Raises OSError.
    """
    with path.open("rb") as file:
        current = None
        while len(header := file.read(HEADER.size)) == HEADER.size:
            mark, sha256, size = HEADER.unpack(header)
            current = current or mark
            if mark == NO_MARK or mark != current or size > JOURNALED_BYTES:
                return
            data = file.read(size)
            if hashlib.sha256(data).digest() != sha256:
                return
            yield sha256, data
