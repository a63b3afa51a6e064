"""The journal of small bodies: many become durable by one write and one sync.

A body with a file of its own needs a sync of the file and one of its folder before it may be
acknowledged. So small bodies are appended to the journal together, and the journal is synced. Their
files are written without a sync and synced later, many at a time (``Journal.sync``); only then is
their segment of the journal reused. After a power cut the next process restores the files from a
journal whose process has ended (``Journal.adopt``).
"""

import contextlib
import errno
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from edgecache.brain.disk.segments import NAME, Body, Segment, records
from edgecache.brain.disk.syncing import move, sync_file, sync_folder, write_new

T = TypeVar("T")

# When all are in use, bodies are synced in files of their own: writers slow down to the disk.
SEGMENTS: Final = 4


class Journal:
    """One process's journal. Every method runs on a thread; several may concurrently."""

    def __init__(self, folder: Path, temp: Path, path_of: Callable[[bytes], Path]) -> None:
        """folder: of the segments, this process's own. temp: of unfinished files.

        path_of: where a hash has its file.
        """
        self._folder = folder
        self._temp = temp
        self._path_of = path_of
        self._lock = threading.Lock()
        # Notified when a segment has lost a writer.
        self._written = threading.Condition(self._lock)
        # Held by what makes files durable: one thread at a time.
        self._keeping = threading.Lock()
        self._current: Segment | None = None
        self._closed: list[Segment] = []
        self._free: list[Segment] = []
        self._made = 0
        # A segment has become full since the last sync began; another sync frees it.
        self.needs_sync_now = False
        self._has_ended = False

    def has_room(self, bodies: Sequence[Body]) -> bool:
        """True if bodies fit, unless others are appended first. Does not wait."""
        current = self._current
        has_spare = bool(self._free) or self._made < SEGMENTS
        return has_spare or (current is not None and current.has_room(bodies))

    def append(self, bodies: Sequence[Body]) -> bool:
        """Make bodies durable and write their files; False if there is no room.

        Raises OSError: then none of them may be acknowledged.
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
            with self._written:
                segment.writers -= 1
                self._written.notify_all()
        return True

    def sync(self) -> None:
        """Make the files of all bodies durable, and their segments free.

        Raises OSError: what could not be synced stays in the journal.
        """
        with self._keeping:
            self._sync_all()

    def end(self) -> None:
        """Make the files of all bodies durable, and remove the journal.

        Waits for the threads that append, whose callers may have been cancelled, and for an
        adoption.
        Raises OSError: the remaining files must be adopted.
        """
        with self._keeping:
            with self._written:
                self._has_ended = True
                self._written.wait_for(lambda: not self._has_writers())
            self._sync_all()
            for segment in self._free:
                segment.remove()

    def adopt(self, folder: Path) -> None:
        """Take over the journal of a process that has ended, and restore its files.

        Raises OSError: what could not be restored stays, and is adopted later.
        """
        with self._keeping:
            if self._has_ended:
                raise OSError(errno.ESHUTDOWN, "this process ends, too")
            _try_each(self._adopt, sorted(folder.glob(f"{NAME}*")))

    def _with_room(self, bodies: Sequence[Body]) -> Segment | None:
        if self._has_ended:
            return None
        if self._current is not None and not self._current.has_room(bodies):
            self._close()
            self.needs_sync_now = True
        if self._current is None:
            if self._free:
                self._current = self._free.pop()
                self._current.begin()
            elif self._made < SEGMENTS:
                self._current = Segment.new(self._folder)
                self._made += 1
        return self._current

    def _close(self) -> None:
        if self._current is not None:
            self._closed.append(self._current)
            self._current = None

    def _has_writers(self) -> bool:
        current = [] if self._current is None else [self._current]
        return any(segment.writers for segment in (*self._closed, *current))

    def _write(self, sha256: bytes, data: bytes) -> None:
        path = self._temp / secrets.token_hex(16)
        try:
            write_new(path, data, is_durable=False)
            move(path, self._path_of(sha256))
        except OSError:
            path.unlink(missing_ok=True)
            raise

    def _adopt(self, path: Path) -> None:
        adopted = Segment(self._folder / path.name, can_be_reused=False)
        # A sync may have failed in the process that has ended: see ``_sync``.
        adopted.is_suspect = True

        def mend(body: Body) -> None:
            self._mend(*body)
            adopted.written.append(body[0])

        _try_each(mend, records(path))
        if not adopted.written:
            path.unlink()
            return
        path.rename(adopted.path)
        with self._lock:
            self._closed.append(adopted)
        # Before the folder from which it came is removed.
        sync_folder(self._folder)

    def _mend(self, sha256: bytes, data: bytes) -> None:
        try:
            if self._path_of(sha256).read_bytes() == data:
                return
        except OSError:
            # Missing, or on a bad part of the disk. Perhaps it was deleted: a file without a row
            # is removed by the sweep.
            pass
        self._write(sha256, data)

    def _sync_all(self) -> None:
        with self._lock:
            self._close()
            self.needs_sync_now = False
            ready = [segment for segment in self._closed if not segment.writers]
        _try_each(self._sync_and_free, ready)

    def _sync_and_free(self, segment: Segment) -> None:
        self._sync(segment)
        if segment.can_be_reused:
            segment.clear()
        else:
            segment.remove()
        with self._lock:
            self._closed.remove(segment)
            if segment.can_be_reused:
                self._free.append(segment)

    def _sync(self, segment: Segment) -> None:
        if segment.is_suspect:
            # After a failed sync the kernel may take what it lost for written.
            for sha256, data in records(segment.path):
                if self._path_of(sha256).exists():
                    self._write(sha256, data)
        segment.is_suspect = True
        paths = [self._path_of(sha256) for sha256 in dict.fromkeys(segment.written)]
        # All writes begin before the first one is waited for.
        for step in (_begin_sync, os.fsync):
            for path in paths:
                # Perhaps deleted since.
                with contextlib.suppress(FileNotFoundError):
                    sync_file(path, step)
        for folder in {path.parent for path in paths}:
            sync_folder(folder)
        segment.is_suspect = False


def _try_each(work: Callable[[T], None], items: Iterable[T]) -> None:
    """Do work for each item, also after a failure; raise the first one at the end."""
    failures = []
    for item in items:
        try:
            work(item)
        except OSError as exc:
            failures.append(exc)
    if failures:
        raise failures[0]


def _begin_sync(file: int) -> None:
    # Advising Linux to drop pages makes it write them.
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
