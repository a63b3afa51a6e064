"""Bytes that come in: kept only if they hash to the name they came with."""

import hashlib
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from edgecache.worker.store.worker_store import IncomingFile, WorkerStore


class WrongBytes(Exception):
    """The received bytes do not match their name; nothing was stored."""


class Incoming:
    """A file that is being stored. The calls block; always ``finish`` or ``discard`` it."""

    def __init__(self, store: WorkerStore, sha256: bytes, size: int) -> None:
        """Make room and open a file. Raises StoreFull, OSError, sqlite3.Error."""
        self._store = store
        self._sha256 = sha256
        self._size = size
        self._digest = hashlib.sha256()
        self._written = 0
        # A request that is given up leaves a thread at its work: the file is its own until then.
        self._at_work = threading.Lock()
        self._room: int | None = store.reserve(size)
        try:
            self._file, self._path = store.files.create()
        except BaseException:
            self._release()
            raise

    def write(self, piece: bytes | bytearray) -> None:
        """Write a piece. Raises WrongBytes for more than was announced, OSError."""
        with self._at_work:
            self._write(piece)

    def _write(self, piece: bytes | bytearray) -> None:
        if self._written + len(piece) > self._size:
            raise WrongBytes
        self._digest.update(piece)
        left = memoryview(piece)
        while left:
            left = left[self._file.write(left) :]
        self._written += len(piece)

    def finish(self, last: bytes | bytearray = b"") -> bool:
        """Write the last piece, verify, sync and keep the file; return whether it is new.

        Raises WrongBytes, OSError, sqlite3.Error; then nothing was stored.
        """
        with self._at_work:
            self._write(last)
            if self._written != self._size or self._digest.digest() != self._sha256:
                raise WrongBytes
            os.fsync(self._file.fileno())
            self._file.close()
            room, self._room = self._room, None
            arrived = IncomingFile(self._path, self._sha256, self._size)
            return bool(self._store.keep([arrived], room=room or 0))

    def discard(self) -> None:
        """Delete what was written; no effect after ``finish``."""
        with self._at_work:
            self._file.close()
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            self._release()

    def _release(self) -> None:
        if self._room is not None:
            self._store.release(self._room)
            self._room = None


def keep_all(store: WorkerStore, blobs: Mapping[bytes, memoryview]) -> list[bytes]:
    """Verify, write, sync and keep small objects; return those that are new. It blocks.

    Raises WrongBytes, StoreFull, OSError, sqlite3.Error; then none of them was kept.
    """
    for sha256, data in blobs.items():
        if hashlib.sha256(data).digest() != sha256:
            raise WrongBytes
    arrived: list[IncomingFile] = []
    reserved: list[int] = []
    try:
        for sha256 in store.missing(list(blobs)):
            size = len(blobs[sha256])
            reserved.append(store.reserve(size))
            arrived.append(IncomingFile(_write_synced(store, blobs[sha256]), sha256, size))
        rooms, reserved = sum(reserved), []
        return store.keep(arrived, room=rooms)
    finally:
        store.release(sum(reserved))
        for each in arrived:
            # Stored files have another name.
            with suppress(OSError):
                each.path.unlink(missing_ok=True)


def _write_synced(store: WorkerStore, data: memoryview) -> Path:
    file, path = store.files.create()
    with file:
        try:
            while data:
                data = data[file.write(data) :]
            os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path
