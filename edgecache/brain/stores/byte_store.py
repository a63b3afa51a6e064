"""What a store can do. Names are random and new: none is written twice."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from edgecache.brain.core.values import Span, StagedFile

# Pieces come as they arrive. A staged file is synced, and may be moved away.
Body = StagedFile | Path | bytes | AsyncIterator[bytes]


class ListedFile(NamedTuple):
    name: str
    modified_at: datetime


class ByteStore(Protocol):
    """A place for bytes. Every method raises StoreUnavailable when it does not answer."""

    max_object_bytes: int

    async def put(self, name: str, body: Body, size: int) -> None:
        """Write bytes, at most ``max_object_bytes``; durable when it returns.

        A body in pieces ends the write with what it raises.

        Raises StoreUnavailable: they may be there. Raises Overloaded if others write for too long.
        """

    def read(self, name: str, span: Span) -> AsyncIterator[bytes]:
        """Yield bytes, as many as asked for.

        Raises StoreMissing, StoreUnavailable.
        """

    def file(self, name: str) -> Path | None:
        """Return the file of a name, which may not exist; None if the store is not a folder."""

    async def size(self, name: str) -> int:
        """Return how many bytes there are. Raises StoreMissing, StoreUnavailable."""

    async def delete(self, names: Sequence[str]) -> None:
        """Delete bytes, ignoring absent ones."""

    def list(self, folder: str) -> AsyncIterator[Sequence[ListedFile]]:
        """Yield the files of a folder, some hundreds at a time."""

    async def abort_unfinished(self, folder: str, before: datetime) -> int:
        """Abort uploads below a folder that began earlier and never ended; return their number."""

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
