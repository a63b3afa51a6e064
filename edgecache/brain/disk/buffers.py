"""Memory for bodies: small ones, which need no file before they are written, and those of XML."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from edgecache.brain.core.errors import Overloaded
from edgecache.brain.core.values import BlobManifest
from edgecache.runtime.fair_shares import Shares

# A larger body goes through a file; otherwise it would be in memory while its client sends it.
BUFFERED_BYTES: Final = 2**20
LIMIT_BYTES: Final = 128 * 2**20


@dataclass(frozen=True, slots=True)
class BufferedBody:
    """Bytes received whole, in memory. It must be passed on, or discarded, like a staged file."""

    data: bytes
    manifest: BlobManifest
    release: Callable[[], None]


class Buffers:
    """One process's memory for bodies.

    used_bytes: of those that may have to go to the disk, not of XML.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.shares = Shares(limit_bytes, refusal=Overloaded)
        self.used_bytes = 0

    def reserve(self, organization_id: int, size: int) -> Callable[[], None] | None:
        """Reserve memory; return what releases it, None if there is too little left.

        A body without a reservation is received into a file.
        """
        share_key = (organization_id,)
        if size > BUFFERED_BYTES or not self.shares.try_take(share_key, size):
            return None
        self.used_bytes += size
        is_released = False

        def release() -> None:
            nonlocal is_released
            if not is_released:
                is_released = True
                self.used_bytes -= size
                self.shares.give_back(share_key, size)

        return release
