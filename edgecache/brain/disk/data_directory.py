"""The brain's files: unfinished bodies, cached blobs, objects and parts of uploads.

Under the data directory, named by hash or at random, never by a key::

    temp/<random>/     of one process, which holds its ``lock``
    journals/<random>/ its journal, with a ``lock``, too; another process ends both folders when
                       their locks are not held. Releases without a journal delete temp/ unread
    origin/ab/<sha256> objects of the built-in origin
    blobs/ab/<sha256>  cached objects of external origins: evictable
    parts/<random>     of unfinished multipart uploads

Brains that share the directory share these files; the built-in origin needs it to be shared.
"""

import asyncio
import errno
import os
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import structlog

from edgecache.brain.core.background import PeriodicTask, wait_for_wakeup
from edgecache.brain.core.errors import OriginChanged, StorageFull
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.values import BlobManifest, Span, StagedFile
from edgecache.brain.disk.budget import CachedBlobUsage, DiskBudget
from edgecache.brain.disk.buffers import BufferedBody, Buffers
from edgecache.brain.disk.digests import Digests, verified
from edgecache.brain.disk.process_folders import ProcessFolders
from edgecache.brain.disk.syncing import bytes_below, make_folders, move, sync_folder, write_whole
from edgecache.runtime.threads import FairThreads

log = structlog.get_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# An organization gets half of them, one of its buckets a quarter.
THREADS: Final = 32
READ_BYTES: Final = 256 * 1024
# Small writes are collected: a hop to a thread costs more than they do.
BUFFER_BYTES: Final = 256 * 1024
SYNC_EVERY_S: Final = 5.0
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


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
        self._folders = ProcessFolders(root, self.origin_path)
        self.temp = self._folders.temp
        self.journal = self._folders.journal
        self._has_failed = False
        self._wakeup = asyncio.Event()
        self._rounds = PeriodicTask("journal", self._round, self._pause)
        self.threads = FairThreads(THREADS, "brain-files")

    @property
    def used_bytes(self) -> int:
        """Return the bytes of unfinished bodies."""
        return self.received_bytes + self.buffers.used_bytes

    async def start(self) -> None:
        """Create the folders; end the folders of processes that have ended."""
        await self.run(self._start)
        await self._rounds.start()

    async def stop(self) -> None:
        """Remove this process's temporary files; a journal that cannot be ended stays."""
        await self._rounds.stop()
        await self.run(self._folders.end)
        self.threads.stop(waits=True)

    def sync_soon(self) -> None:
        """Sync the journal before its time, to make room."""
        self._wakeup.set()

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

    # --- blobs ------------------------------------------------------------------------------

    def origin_path(self, sha256: bytes) -> Path:
        """Return the path of the built-in origin's file."""
        return _sharded(self.root / "origin", sha256)

    def blob_path(self, sha256: bytes) -> Path:
        return _sharded(self.root / "blobs", sha256)

    async def local(self, sha256: bytes) -> Path | None:
        """Return a file with these bytes, or None."""
        return await self.run(self.find, sha256)

    def find(self, sha256: bytes) -> Path | None:
        """Return what ``local`` does. Runs on a thread (``run``)."""
        for path in (self.origin_path(sha256), self.blob_path(sha256)):
            if path.exists():
                return path
        return None

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

    def place(self, staged: StagedFile, target: Path) -> None:
        """Move a body to its lasting path: atomic, durable. Runs on a thread (``run``)."""
        if target.parent.parent.name == "blobs":
            self.copies.add(staged.manifest.size)
        move(staged.path, target)
        sync_folder(target.parent)

    def keep_copy(self, staged: StagedFile) -> None:
        """Move a body to a cached blob's path, where it may be lost. Runs on a thread (``run``)."""
        target = self.blob_path(staged.manifest.sha256)
        move(staged.path, target)
        self.copies.add(staged.manifest.size)

    def unlink_copy(self, path: Path) -> None:
        """Remove a cached blob. Runs on a thread (``run``)."""
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            return
        self.forget_copy(path, size)

    def forget_copy(self, path: Path, size: int) -> None:
        """No longer count a file that was removed, if it was a cached blob."""
        if path.parent.parent.name == "blobs":
            self.copies.add(-size)

    # --- parts of uploads -------------------------------------------------------------------

    async def keep_part(self, staged: StagedFile) -> str:
        """Store a part of an upload; return the name for ``UploadPart.file``. The body is consumed.

        Raises StorageFull, OSError.
        """
        name = secrets.token_hex(16)
        try:
            # In one step, because a part must not need twice its size.
            self.count_out(staged.path)
            self.budget.take_part(name, staged.manifest.size)
            await self.run(self.place, staged, self.part_path(name))
        except BaseException:
            self.budget.give_back_part(name)
            await self.discard(staged)
            raise
        return name

    def part_path(self, name: str) -> Path:
        return self.root / "parts" / name

    async def drop_parts(self, names: list[str]) -> None:
        """Remove parts without rows; the sweep finds those that a bad disk keeps."""
        for name in names:
            try:
                await self.run(self.part_path(name).unlink, missing_ok=True)
            except OSError as exc:
                log.warning("part_not_removed", part=name, error=exc.strerror)
            else:
                self.budget.give_back_part(name)

    async def _pause(self) -> None:
        if self._has_failed:
            # A failing sync must not keep the disk busy, however full the journal is.
            await asyncio.sleep(SYNC_EVERY_S)
        await wait_for_wakeup(self._wakeup, SYNC_EVERY_S)

    async def _round(self) -> None:
        self._has_failed = True
        await self.run(self._folders.keep)
        self._has_failed = False

    # --- on a thread ------------------------------------------------------------------------

    def _start(self) -> None:
        make_folders([self.root])
        make_folders(self.root / name for name in ("origin", "blobs", "parts", "temp", "journals"))
        # No writer has to find out whether its folder's name is durable.
        make_folders(self.origin_path(bytes([first])).parent for first in range(256))
        self._folders.start()
        self.copies.found(bytes_below(self.root / "blobs"))


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
    """Yield a span of a blob until a byte is wrong or missing; maybe nothing.

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
        # The built-in origin's file stays: it may be the only one with the other bytes.
        if path == data_directory.blob_path(manifest.sha256):
            await data_directory.run(data_directory.unlink_copy, path)


def file_error(exc: OSError) -> Exception:
    """Return StorageFull for a full disk, and any other error unchanged."""
    return StorageFull() if exc.errno in NO_ROOM else exc


def _sharded(folder: Path, sha256: bytes) -> Path:
    name = sha256.hex()
    return folder / name[:2] / name
