"""A store in a folder: of the data directory, or such as a network file system's."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from common.machine.reasons import reason
from edgecache.brain.core.errors import StoreMissing, StoreUnavailable
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.values import Span, StagedFile
from edgecache.brain.disk.data_directory import NO_ROOM
from edgecache.brain.disk.syncing import FILE_MODE, sync_folder, write_whole
from edgecache.brain.stores.byte_store import Body, ListedFile
from edgecache.runtime.threads import FairThreads

log = structlog.get_logger(__name__)

T = TypeVar("T")

PIECE_BYTES: Final = 2**20
LIST_STEP: Final = 1000
UNFINISHED: Final = "unfinished"
CREATING: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
READING: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
FULL: Final = "The store of this platform's objects is full; nothing was stored."
# Of a command; a brain has its threads for files.
THREADS: Final = 16


class FolderStore:
    """Files below a folder; each gets its name when it is complete and synced."""

    # What file systems hold in a file.
    max_object_bytes: int = 8 * 2**40

    def __init__(
        self,
        root: Path,
        full: Callable[[], Exception] | None = None,
        *,
        threads: FairThreads | None = None,
    ) -> None:
        """root: must exist. full: the error for a full disk, StoreUnavailable by default."""
        self._root = root
        self._full = full or partial(StoreUnavailable, FULL)
        self._threads = threads or FairThreads(THREADS, "store")

    async def close(self) -> None:
        """Do nothing: no file stays open."""

    async def put(self, name: str, body: Body, size: int) -> None:
        """Write bytes."""
        del size
        if isinstance(body, StagedFile | Path | bytes):
            await self._run(self._put, name, body)
        else:
            await self._put_pieces(name, body)

    async def _put_pieces(self, name: str, pieces: AsyncIterator[bytes]) -> None:
        unfinished = await self._run(self._begin, name)
        try:
            async for piece in pieces:
                await self._run(_append, unfinished, piece)
            await self._run(self._finish, unfinished, name)
        except BaseException:
            await self._run(lambda: unfinished.unlink(missing_ok=True))
            raise

    async def read(self, name: str, span: Span) -> AsyncIterator[bytes]:
        """Yield bytes, also of a file that is deleted meanwhile."""
        opening = partial(self._mapped, partial(os.open, self._root / name, READING))
        file = await self._threads.owned(SHARE_KEY.get(), opening, os.close)
        try:
            position, end = span.start, span.start + span.length
            while position < end:
                length = min(end - position, PIECE_BYTES)
                piece = await self._run(os.pread, file, length, position)
                if not piece:
                    raise StoreMissing
                position += len(piece)
                yield piece
        finally:
            os.close(file)

    def file(self, name: str) -> Path | None:
        return self._root / name

    async def size(self, name: str) -> int:
        return await self._run(self._size, name)

    async def delete(self, names: Sequence[str]) -> None:
        await self._run(self._delete, names)

    async def remove_empty(self, names: Sequence[str]) -> None:
        """Remove the folders of deleted files, where nothing is left in them."""
        await self._run(self._remove_empty, names)

    async def list(self, folder: str) -> AsyncIterator[Sequence[ListedFile]]:
        """Yield every complete file below a folder."""
        found = await self._run(lambda: [*self._walk(self._root / folder)])
        for start in range(0, len(found), LIST_STEP):
            yield found[start : start + LIST_STEP]

    async def abort_unfinished(self, folder: str, before: datetime) -> int:
        """Delete what a brain was writing when it ended."""
        aborted = f"{folder}-{UNFINISHED}"
        return await self._run(self._abort_unfinished, aborted, before)

    # --- on a thread ------------------------------------------------------------------------

    def _put(self, name: str, body: StagedFile | Path | bytes) -> None:
        """Write a whole body, with few system calls: each passes on the interpreter lock."""
        if isinstance(body, StagedFile) and self._move(body.path, name):
            return
        source = body.path if isinstance(body, StagedFile) else body
        unfinished = self._unfinished(name)
        file = self._create(unfinished)
        try:
            try:
                if isinstance(source, bytes):
                    write_whole(file, source)
                else:
                    with source.open("rb") as opened:
                        while piece := opened.read(PIECE_BYTES):
                            write_whole(file, piece)
                os.fsync(file)
            finally:
                os.close(file)
            self._rename(unfinished, name)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    def _move(self, staged: Path, name: str) -> bool:
        """Give a synced file its name; False if it is on another file system."""
        try:
            self._rename(staged, name)
        except OSError as exc:
            if exc.errno == errno.EXDEV:
                return False
            raise
        return True

    def _unfinished(self, name: str) -> Path:
        """Return a new path for the file that becomes a name when it is complete."""
        folder, _, _ = name.partition("/")
        return self._root / f"{folder}-{UNFINISHED}" / secrets.token_hex(16)

    def _create(self, unfinished: Path) -> int:
        try:
            return os.open(unfinished, CREATING, FILE_MODE)
        except FileNotFoundError:
            self._make_folder(unfinished.parent)
            return os.open(unfinished, CREATING, FILE_MODE)

    def _begin(self, name: str) -> Path:
        unfinished = self._unfinished(name)
        os.close(self._create(unfinished))
        return unfinished

    def _finish(self, unfinished: Path, name: str) -> None:
        """Sync a file, and give it its name."""
        with unfinished.open("ab") as file:
            os.fsync(file.fileno())
        self._rename(unfinished, name)

    def _rename(self, synced: Path, name: str) -> None:
        """Give a synced file its name, durably."""
        target = self._root / name
        try:
            synced.rename(target)
        except FileNotFoundError:
            # The first one in its folder, which is removed when it is empty.
            self._make_folder(target.parent)
            synced.rename(target)
        sync_folder(target.parent)

    def _make_folder(self, folder: Path) -> None:
        """Create a folder below the root, which itself must be there: it may be a mount."""
        if folder == self._root or folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)
        sync_folder(folder.parent)

    def _size(self, name: str) -> int:
        found = (self._root / name).stat()
        if not stat.S_ISREG(found.st_mode):
            # A folder, or a pipe that a read would wait for. No store writes such a thing.
            raise FileNotFoundError
        return found.st_size

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def _remove_empty(self, names: Sequence[str]) -> None:
        for name in names:
            for folder in (self._root / name).parents:
                if folder == self._root:
                    break
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    continue
                except OSError:
                    # Not empty.
                    break

    def _walk(self, top: Path) -> Iterator[ListedFile]:
        for folder, _, names in os.walk(top):
            for name in names:
                path = Path(folder) / name
                with contextlib.suppress(FileNotFoundError):
                    yield ListedFile(path.relative_to(self._root).as_posix(), _modified_at(path))

    def _abort_unfinished(self, folder: str, before: datetime) -> int:
        count = 0
        for path in (self._root / folder).glob("*"):
            with contextlib.suppress(FileNotFoundError):
                if _modified_at(path) < before:
                    path.unlink()
                    count += 1
        return count

    async def _run(self, work: Callable[..., T], *args: Any) -> T:
        """Run a function on a thread; its errors become a store's."""
        return await self._threads.run(SHARE_KEY.get(), lambda: self._mapped(partial(work, *args)))

    def _mapped(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except FileNotFoundError as exc:
            # A file system that is not mounted has lost nothing.
            if self._root.is_dir():
                raise StoreMissing from None
            log.warning("store_failed", store=str(self._root), reason=reason(exc))
            raise StoreUnavailable from exc
        except OSError as exc:
            log.warning("store_failed", store=str(self._root), reason=reason(exc))
            raise (self._full() if exc.errno in NO_ROOM else StoreUnavailable()) from exc


def _append(unfinished: Path, piece: bytes) -> None:
    with unfinished.open("ab", buffering=0) as file:
        write_whole(file.fileno(), piece)


def _modified_at(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
