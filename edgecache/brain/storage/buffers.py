"""Memory for small bodies, which need no file of their own before they are written."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from edgecache.brain.values import Manifest

# A larger body goes through a file: it would be in memory for as long as its client takes.
BUFFERED_BYTES: Final = 2**20
LIMIT_BYTES: Final = 64 * 2**20
# A tenant that sends slowly may fill no more; the others' bodies have the rest.
SHARES: Final = 4


@dataclass(frozen=True, slots=True)
class BufferedBody:
    """Bytes received whole, in memory. It must be passed on, or discarded, like a staged file."""

    data: bytes
    manifest: Manifest
    release: Callable[[], None]


class Buffers:
    """One process's memory for bodies. used_bytes: reserved at the moment."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.used_bytes = 0
        self._limit_bytes = limit_bytes
        self._by_organization: Counter[int] = Counter()

    def reserve(self, organization_id: int, size: int) -> Callable[[], None] | None:
        """Reserve memory; return what releases it, None if there is no room or too little left.

        What has no room is not refused: it is received into a file.
        """
        used = self._by_organization[organization_id]
        if (
            size > BUFFERED_BYTES
            or self.used_bytes + size > self._limit_bytes
            or used + size > self._limit_bytes // SHARES
        ):
            return None
        self.used_bytes += size
        self._by_organization[organization_id] = used + size
        is_released = False

        def release() -> None:
            nonlocal is_released
            if not is_released:
                is_released = True
                self._release(organization_id, size)

        return release

    def _release(self, organization_id: int, size: int) -> None:
        self.used_bytes -= size
        self._by_organization[organization_id] -= size
        if not self._by_organization[organization_id]:
            del self._by_organization[organization_id]
