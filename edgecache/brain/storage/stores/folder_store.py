"""A store in a folder, such as a network file system's."""

import asyncio
import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import structlog

from edgecache.brain.delivery.delivery import Span
from edgecache.brain.errors import StoreMissing, StoreUnavailable
from edgecache.brain.storage.stores.store import StoredName

log = structlog.get_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

PIECE_BYTES: Final = 2**20
LISTED_AT_ONCE: Final = 1000
UNFINISHED: Final = "unfinished"


class FolderStore:
    """Files below a folder; each gets its name when it is complete and synced."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, name: str, body: Path | bytes, size: int) -> None:
        """Write bytes."""
        del size
        await self._run(self._put, name, body)

    async def read(self, name: str, span: Span) -> AsyncIterator[bytes]:
        """Yield bytes."""
        position, end = span.start, span.start + span.length
        while position < end:
            piece = await self._run(self._piece, name, position, min(end - position, PIECE_BYTES))
            if not piece:
                raise StoreMissing
            position += len(piece)
            yield piece

    async def size(self, name: str) -> int:
        """Return the size of a file."""
        return await self._run(self._size, name)

    async def delete(self, names: Sequence[str]) -> None:
        """Delete bytes."""
        await self._run(self._delete, names)

    async def list(self, folder: str) -> AsyncIterator[Sequence[StoredName]]:
        """Yield every complete file below a folder."""
        found = await self._run(lambda: [*self._walk(self._root / folder)])
        for start in range(0, len(found), LISTED_AT_ONCE):
            yield found[start : start + LISTED_AT_ONCE]

    async def abort_unfinished(self, folder: str, before: datetime) -> int:
        """Delete what a brain was writing when it died."""
        return await self._run(self._abort_unfinished, f"{folder}-{UNFINISHED}", before)

    # --- on a thread ------------------------------------------------------------------------

    def _put(self, name: str, body: Path | bytes) -> None:
        folder, _, _ = name.partition("/")
        unfinished = self._root / f"{folder}-{UNFINISHED}" / secrets.token_hex(16)
        target = self._root / name
        self._make_folder(unfinished.parent)
        self._make_folder(target.parent)
        try:
            with unfinished.open("xb") as file:
                if isinstance(body, bytes):
                    file.write(body)
                else:
                    with body.open("rb") as source:
                        shutil.copyfileobj(source, file, PIECE_BYTES)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)

    def _make_folder(self, folder: Path) -> None:
        """Create a folder below the root, which itself must be there: it may be a mount."""
        if folder == self._root or folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)
        _sync_folder(folder.parent)

    def _size(self, name: str) -> int:
        found = (self._root / name).stat()
        if not stat.S_ISREG(found.st_mode):
            # A folder, or a pipe that a read would wait for. No store writes such a thing.
            raise FileNotFoundError
        return found.st_size

    def _piece(self, name: str, position: int, length: int) -> bytes:
        with (self._root / name).open("rb") as file:
            return os.pread(file.fileno(), length, position)

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def _walk(self, top: Path) -> Iterator[StoredName]:
        for folder, _, names in os.walk(top):
            for name in names:
                path = Path(folder) / name
                with contextlib.suppress(FileNotFoundError):
                    yield StoredName(path.relative_to(self._root).as_posix(), _modified_at(path))

    def _abort_unfinished(self, folder: str, before: datetime) -> int:
        count = 0
        for path in (self._root / folder).glob("*"):
            with contextlib.suppress(FileNotFoundError):
                if _modified_at(path) < before:
                    path.unlink()
                    count += 1
        return count

    async def _run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await asyncio.to_thread(work, *args, **kwargs)
        except FileNotFoundError as exc:
            # A file system that is not mounted has lost nothing.
            if await asyncio.to_thread(self._root.is_dir):
                raise StoreMissing from None
            log.warning("store_failed", store=str(self._root), errno=exc.errno)
            raise StoreUnavailable from None
        except OSError as exc:
            log.warning("store_failed", store=str(self._root), errno=exc.errno)
            raise StoreUnavailable from exc


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _modified_at(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
