"""What a store can do. Names are fresh and random: none is ever written twice."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from edgecache.brain.delivery.delivery import Span


class StoredName(NamedTuple):
    """A line of a listing."""

    name: str
    modified_at: datetime


class Store(Protocol):
    """A place for bytes. Every method raises StoreUnavailable when it does not answer."""

    async def put(self, name: str, body: Path | bytes, size: int) -> None:
        """Write bytes; durable when it returns.

        Raises StoreUnavailable: they may be there.
        """

    def read(self, name: str, span: Span) -> AsyncIterator[bytes]:
        """Yield bytes, as many as asked for.

        Raises StoreMissing, StoreUnavailable.
        """

    async def size(self, name: str) -> int:
        """Return how many bytes there are.

        Raises StoreMissing, StoreUnavailable.
        """

    async def delete(self, names: Sequence[str]) -> None:
        """Delete bytes; those that are not there are no error."""

    def list(self, folder: str) -> AsyncIterator[Sequence[StoredName]]:
        """Yield what is below a folder, some hundreds at a time."""

    async def abort_unfinished(self, folder: str, before: datetime) -> int:
        """Abort uploads below a folder that began earlier and never ended; return their number."""
