"""The brain's files: unfinished bodies, copies that may be lost, and the store ``file://``.

Under the data directory, named by hash or at random, never by a key::

    lock               held by every process that uses the directory
    temp/<random>      unfinished bodies, emptied by a process that starts alone
    blobs/ab/<sha256>  copies that may be lost: of external origins' objects, and of another store's
    objects/           the store ``file://`` (``stores/folder_store.py``)

Brains that share the directory share these files; the store ``file://`` needs it to be shared.
"""

import asyncio
import errno
import fcntl
import os
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import structlog

from common.machine.errors import StartError
from edgecache.brain.core.errors import OriginChanged, StorageFull
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.values import BlobManifest, Span, StagedFile
from edgecache.brain.disk.budget import CachedBlobUsage, DiskBudget
from edgecache.brain.disk.buffers import BufferedBody, Buffers
from edgecache.brain.disk.digests import Digests, verified
from edgecache.brain.disk.syncing import (
    FILE_MODE,
    bytes_below,
    make_folders,
    move,
    write_new,
    write_whole,
)
from edgecache.runtime.threads import FairThreads

log = structlog.get_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# An organization gets half of them, one of its buckets a quarter.
THREADS: Final = 32
READ_BYTES: Final = 256 * 1024
# Small writes are collected: a hop to a thread costs more than they do.
BUFFER_BYTES: Final = 256 * 1024
# Files that one piece of work removes.
REMOVED_TOGETHER: Final = 100
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# Folders of versions before the first release, whose bodies this one does not read.
FORMER: Final = ("origin", "journals", "parts")


class FormerDataError(StartError):
    """The data directory is of a version before the first release."""


class DataDirectory:
    """One brain's files in the data directory.

    limit_bytes: of unfinished bodies, parts of uploads and cached blobs together, shared by
    organization. brains: have the data directory together, each with such a limit.
    received_bytes: of unfinished bodies, in files of this brain; copies: of cached blobs.
    buffers: of bodies in memory.
    """

    def __init__(self, root: Path, *, limit_bytes: int, brains: int = 1) -> None:
        self.root = root
        self.limit_bytes = limit_bytes
        self.brains = brains
        self.received_bytes = 0
        self.copies = CachedBlobUsage(brains)
        self.buffers = Buffers()
        self.budget = DiskBudget(limit_bytes, self.buffers)
        self.temp = root / "temp"
        # The store ``file://``.
        self.objects = objects_folder(root)
        self._lock = -1
        self.threads = FairThreads(THREADS, "brain-files")

    @property
    def used_bytes(self) -> int:
        """Return the bytes of unfinished bodies."""
        return self.received_bytes + self.buffers.used_bytes

    async def start(self) -> None:
        """Create the folders; remove what processes left that have ended.

        Raises FormerDataError.
        """
        await self.run(self._start)

    async def stop(self) -> None:
        """Wait for what is being written."""
        self.threads.stop(waits=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run file work on a thread.

        Raises StorageFull when the disk is full, and what the work raises.
        """
        try:
            return await self.threads.run(SHARE_KEY.get(), lambda: work(*args, **kwargs))
        except OSError as exc:
            raise file_error(exc) from exc

    def receive(self) -> "Receiver":
        return Receiver(self)

    def reserve(self, organization_id: int, size: int) -> Callable[[], None] | None:
        """Reserve memory for a small body, as ``Buffers.reserve`` does."""
        if self.used_bytes + size > self.limit_bytes:
            return None
        return self.buffers.reserve(organization_id, size)

    async def take(self, body: AsyncIterator[bytes]) -> StagedFile:
        """Receive a whole body. Raises StorageFull, OSError, and what the body raises."""
        receiver = self.receive()
        try:
            async for piece in body:
                await receiver.write(piece)
            return await receiver.finish()
        except BaseException:
            await receiver.discard()
            raise

    async def discard(self, body: StagedFile | BufferedBody) -> None:
        """Remove a body."""
        if isinstance(body, BufferedBody):
            body.release()
        else:
            try:
                await asyncio.shield(self.run(body.path.unlink, missing_ok=True))
            finally:
                self.count_out(body.path)

    def count_out(self, path: Path) -> None:
        """No longer count a received file: it has been moved, or is being removed."""
        self.received_bytes -= self.budget.give_back_file(path)

    # --- copies -----------------------------------------------------------------------------

    def blob_path(self, sha256: bytes) -> Path:
        """Return the path of a copy."""
        name = sha256.hex()
        return self.root / "blobs" / name[:2] / name

    async def local(self, sha256: bytes) -> Path | None:
        """Return a copy of these bytes, or None."""
        path = self.blob_path(sha256)
        return path if await self.run(path.exists) else None

    async def read(self, path: Path, span: Span) -> AsyncIterator[bytes]:
        """Yield a span of a file in pieces. Raises OSError, also for a file that is too short."""
        opening = partial(os.open, path, os.O_RDONLY)
        file = await self.threads.owned(SHARE_KEY.get(), opening, os.close)
        try:
            position, left = span.start, span.length
            while left:
                piece = await self.run(os.pread, file, min(left, READ_BYTES), position)
                if not piece:
                    raise OSError(errno.EIO, "the file is shorter than it should be")
                position += len(piece)
                left -= len(piece)
                yield piece
        finally:
            os.close(file)

    async def keep_copy(self, body: StagedFile | BufferedBody) -> None:
        """Keep a copy of bytes that can be had elsewhere, too: it may be lost. A file is moved.

        Raises StorageFull, OSError.
        """
        await self.run(self._keep_copy, body)
        if isinstance(body, StagedFile):
            self.count_out(body.path)

    async def remove_copies(self, hashes: Sequence[bytes]) -> None:
        """Remove copies; some may not exist."""
        for start in range(0, len(hashes), REMOVED_TOGETHER):
            paths = [self.blob_path(each) for each in hashes[start : start + REMOVED_TOGETHER]]
            await self.run(self._unlink_copies, paths)

    def unlink_copy(self, path: Path) -> None:
        """Remove a copy. Runs on a thread (``run``)."""
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            return
        self.copies.add(-size)

    # --- on a thread ------------------------------------------------------------------------

    def _start(self) -> None:
        for name in FORMER:
            if (self.root / name).exists():
                raise FormerDataError(
                    f"{self.root} is of a version before the first release, whose data is not "
                    "kept: remove it together with the databases, or name another ZDATA_DIR."
                )
        make_folders([self.root])
        make_folders([self.temp, self.objects, self.root / "blobs"])
        # Copies need no durable names, and so no folder that is made durably.
        for first in range(256):
            self.blob_path(bytes([first])).parent.mkdir(exist_ok=True, mode=0o700)
        flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
        self._lock = os.open(self.root / "lock", flags, FILE_MODE)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # What other processes have left is removed when it is a day old.
            pass
        else:
            for path in self.temp.iterdir():
                path.unlink(missing_ok=True)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        self.copies.found(bytes_below(self.root / "blobs"))

    def _unlink_copies(self, paths: Sequence[Path]) -> None:
        for path in paths:
            self.unlink_copy(path)

    def _keep_copy(self, body: StagedFile | BufferedBody) -> None:
        path = body.path if isinstance(body, StagedFile) else self.temp / secrets.token_hex(16)
        try:
            if isinstance(body, BufferedBody):
                write_new(path, body.data, is_durable=False)
            move(path, self.blob_path(body.manifest.sha256))
        except OSError:
            path.unlink(missing_ok=True)
            raise
        self.copies.add(body.manifest.size)


class Receiver:
    """Writes one body to disk and computes its digests.

    size: bytes received, 0 once it is finished. written: of these, in the file, for readers of the
    growing file at ``path``.
    """

    def __init__(self, data_directory: DataDirectory) -> None:
        self._data_directory = data_directory
        self.path = data_directory.temp / secrets.token_hex(16)
        self.size = 0
        self.written = 0
        self._share_key = SHARE_KEY.get()
        self._file = -1
        self._digests = Digests()
        self._buffer: list[bytes] = []
        self._buffered = 0
        # A cancelled task leaves a thread running: it owns the file until it is done.
        self._at_work = threading.Lock()
        self._is_over = False

    def has_room(self, size: int) -> bool:
        """True if a body of this size fits now."""
        return self._data_directory.budget.has_room(self._share_key, size)

    async def write(self, data: bytes) -> None:
        """Write the next bytes. Raises StorageFull, OSError."""
        self._data_directory.budget.take(
            self._share_key, len(data), wanted_bytes=self.size + len(data)
        )
        self._data_directory.received_bytes += len(data)
        self._buffer.append(data)
        self._buffered += len(data)
        self.size += len(data)
        if self._buffered >= BUFFER_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Write what was received to the file."""
        pieces, self._buffer, self._buffered = self._buffer, [], 0
        self.written += await self._data_directory.run(self._append, pieces)

    async def finish(self) -> StagedFile:
        """Return the complete, synced body, which counts until it is moved or removed.

        Raises StorageFull, OSError.
        """
        pieces, self._buffer, self._buffered = self._buffer, [], 0
        self.written += await self._data_directory.run(self._append, pieces, is_last=True)
        self._data_directory.budget.charge_file(self.path, self._share_key, self.size)
        self.size = 0
        return StagedFile(self.path, self._digests.manifest())

    async def discard(self) -> None:
        """Remove the file; harmless afterwards."""
        self._data_directory.received_bytes -= self.size
        self._data_directory.budget.give_back(self._share_key, self.size)
        self.size = 0
        try:
            await asyncio.shield(self._data_directory.run(self._remove))
        finally:
            self._data_directory.count_out(self.path)

    def _append(self, pieces: list[bytes], *, is_last: bool = False) -> int:
        with self._at_work:
            if self._is_over:
                return 0
            if self._file < 0:
                self._file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            count = 0
            for piece in pieces:
                write_whole(self._file, piece)
                self._digests.update(piece)
                count += len(piece)
            if is_last:
                os.fsync(self._file)
                os.close(self._file)
                self._file = -1
            return count

    def _remove(self) -> None:
        with self._at_work:
            self._is_over = True
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
            self.path.unlink(missing_ok=True)


async def local_bytes(
    data_directory: DataDirectory, manifest: BlobManifest, span: Span
) -> AsyncIterator[bytes]:
    """Yield a span of a copy until a byte is wrong or missing; maybe nothing.

    A wrong copy is deleted.
    """
    path = await data_directory.local(manifest.sha256)
    if path is None:
        return
    try:
        async for piece in verified(partial(data_directory.read, path), manifest, span):
            yield piece
    except (OriginChanged, OSError):
        log.exception("own_bytes_wrong", sha256=manifest.sha256.hex())
        await data_directory.remove_copies([manifest.sha256])


def file_error(exc: OSError) -> Exception:
    """Return StorageFull for a full disk, and any other error unchanged."""
    return StorageFull() if exc.errno in NO_ROOM else exc


def objects_folder(root: Path) -> Path:
    """Return the folder of the store ``file://`` in a data directory."""
    return root / "objects"
