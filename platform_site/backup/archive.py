"""The store that backups are in."""

import asyncio
import hashlib
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings

from edgecache.brain.delivery.delivery import Span
from edgecache.brain.errors import StoreUnavailable
from edgecache.brain.storage.stores.registry import open_store
from edgecache.brain.storage.stores.settings import StoreSettings
from edgecache.brain.storage.stores.store import Store, StoredName
from platform_site.backup.sealing import Digest
from platform_site.lib.commands import Refused, Unreachable

T = TypeVar("T")


class Archive:
    """Files by name. Every method raises Unreachable when the store does not answer."""

    def __init__(self, store: Store, name: str, runner: asyncio.Runner) -> None:
        self.store = store
        self.name = name
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something that uses the store itself.

        Raises Unreachable.
        """
        try:
            return self._runner.run(work)
        except StoreUnavailable:
            sentence = f"{self.name} does not answer, or refuses us. The log says more."
            raise Unreachable("store_unreachable", sentence) from None

    def put(self, name: str, body: Path | bytes) -> None:
        """Write a file, durably."""
        size = len(body) if isinstance(body, bytes) else body.stat().st_size
        self.run(self.store.put(name, body, size))

    def read(self, name: str) -> bytes:
        """Return a small file's bytes.

        Raises StoreMissing.
        """
        return self.run(read_all(self.store, name))

    def fetch(self, name: str, target: Path) -> Digest:
        """Write a file's bytes to a local one; return what they are.

        Raises StoreMissing.
        """
        return self.run(fetch_to(self.store, name, target))

    def digest(self, name: str) -> Digest:
        """Read a file, and return what it is.

        Raises StoreMissing.
        """
        return self.run(fetch_to(self.store, name, None))

    def names(self, folder: str) -> list[StoredName]:
        """Return everything below a folder."""
        return self.run(self._names(folder))

    def delete(self, names: Sequence[str]) -> None:
        """Delete files."""
        self.run(self.store.delete(names))

    async def _names(self, folder: str) -> list[StoredName]:
        return [each async for page in self.store.list(folder) for each in page]


async def fetch_to(store: Store, name: str, target: Path | None) -> Digest:
    """Read a file, into a local one if there is a target; return what it is.

    Raises StoreMissing, StoreUnavailable.
    """
    size = await store.size(name)
    hashed = hashlib.sha256()
    with target.open("wb") if target is not None else nullcontext() as opened:
        async for piece in store.read(name, Span(0, size)):
            hashed.update(piece)
            if opened is not None:
                opened.write(piece)
    return Digest(hashed.hexdigest(), size)


async def read_all(store: Store, name: str) -> bytes:
    """Return a file's bytes.

    Raises StoreMissing, StoreUnavailable.
    """
    size = await store.size(name)
    return b"".join([piece async for piece in store.read(name, Span(0, size))])


@contextmanager
def open_archive() -> Iterator[Archive]:
    """Yield the configured store.

    Raises Refused.
    """
    chosen: StoreSettings = settings.BACKUP.store
    store = open_store(chosen) if settings.BACKUP.url else None
    if store is None:
        raise Refused("backup_not_configured", "Set ZBACKUP_URL and ZBACKUP_RECIPIENTS.")
    if chosen.parts.scheme == "file" and not Path(chosen.parts.path).is_dir():
        # It may be a mount that is missing: made here, a backup would be on the wrong disk.
        raise Unreachable("store_unreachable", f"The folder {chosen.parts.path} does not exist.")
    with asyncio.Runner() as runner:
        yield Archive(store, chosen.name, runner)
