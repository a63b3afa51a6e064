"""The store of backups: a folder or a bucket."""

import asyncio
import hashlib
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings

from common.commands import CommandRefused, Unreachable
from common.machine.reasons import reason
from edgecache.brain.conf.stores import DATA_FOLDER, StoreSettings
from edgecache.brain.core.errors import StoreUnavailable
from edgecache.brain.core.values import Span
from edgecache.brain.stores.byte_store import ByteStore, ListedFile
from edgecache.brain.stores.folder_store import FolderStore
from edgecache.brain.stores.reachable_stores import open_store
from operations.backup.sealing import Digest

T = TypeVar("T")


class BackupArchive:
    """Files by name. Every method raises Unreachable when the store does not answer."""

    def __init__(self, store: ByteStore, name: str, runner: asyncio.Runner) -> None:
        self.store = store
        self.name = name
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that uses the store. Raises Unreachable."""
        try:
            return self._runner.run(work)
        except StoreUnavailable as exc:
            said = reason(exc.__cause__ or exc)
            sentence = f"{self.name} does not answer, or refuses us: {said}"
            raise Unreachable("store_unreachable", sentence) from None

    def put(self, name: str, body: Path | bytes) -> None:
        """Write a file, durably."""
        size = len(body) if isinstance(body, bytes) else body.stat().st_size
        self.run(self.store.put(name, body, size))

    def read(self, name: str, *, limit_bytes: int) -> bytes:
        """Return a small file's first bytes, all of them if the limit is not exceeded.

        Raises StoreMissing.
        """
        return self.run(read_all(self.store, name, limit_bytes))

    def fetch(self, name: str, wanted: Digest, target: Path) -> bool:
        """Write a file's bytes to a local file; return True if they match the digest.

        Raises StoreMissing.
        """
        return self.run(fetch_to(self.store, name, wanted, target))

    def holds(self, name: str, wanted: Digest) -> bool:
        """Read a file; return True if its bytes match the digest. Raises StoreMissing."""
        return self.run(fetch_to(self.store, name, wanted, None))

    def names(self, folder: str) -> list[ListedFile]:
        """Return the names of all files below a folder."""
        return self.run(self._names(folder))

    def delete(self, names: Sequence[str]) -> None:
        """Delete files, and the folders that are empty then."""
        self.run(self.store.delete(names))
        if isinstance(self.store, FolderStore):
            self.run(self.store.remove_empty(names))

    async def _names(self, folder: str) -> list[ListedFile]:
        return [each async for page in self.store.list(folder) for each in page]


async def fetch_to(store: ByteStore, name: str, wanted: Digest, target: Path | None) -> bool:
    """Read a file, and write it to a target if given; return True if it matches the digest.

    A file of another size is not read: it could fill the disk.
    Raises StoreMissing, StoreUnavailable.
    """
    if await store.size(name) != wanted.size:
        return False
    hashed = hashlib.sha256()
    with target.open("wb") if target is not None else nullcontext() as opened:
        async for piece in store.read(name, Span(0, wanted.size)):
            hashed.update(piece)
            if opened is not None:
                opened.write(piece)
    return hashed.hexdigest() == wanted.sha256


async def read_all(store: ByteStore, name: str, limit_bytes: int) -> bytes:
    """Return a file's first bytes, all of them if the limit is not exceeded.

    Raises StoreMissing, StoreUnavailable.
    """
    span = Span(0, min(await store.size(name), limit_bytes))
    return b"".join([piece async for piece in store.read(name, span)])


@contextmanager
def open_archive() -> Iterator[BackupArchive]:
    """Yield the configured store. Raises CommandRefused."""
    chosen: StoreSettings = settings.BACKUP.store
    if chosen.url in {"", DATA_FOLDER}:
        raise CommandRefused("backup_not_configured", "Set ZBACKUP_URL and ZBACKUP_RECIPIENTS.")
    store = open_store(chosen)
    if chosen.parts.scheme == "file" and not Path(chosen.parts.path).is_dir():
        # The folder is not created: if a mount is missing, backups would be written to the wrong
        # disk.
        raise Unreachable("store_unreachable", "The folder of ZBACKUP_URL does not exist.")
    with asyncio.Runner() as runner:
        try:
            yield BackupArchive(store, chosen.name, runner)
        finally:
            runner.run(store.close())
