"""What a request's body may cost the server: time, and work of the parser."""

from typing import Final

from edgecache.http.limits import NEVER, Limits
from edgecache.http.request_head import HeadRefused

# In what one read brings, 256 KiB at most. Each chunk costs a microsecond, so very small ones would
# keep the loop busy for longer than their bytes are worth.
CHUNKS_AT_ONCE: Final = 8192
TINY_CHUNKS_AT_ONCE: Final = 512
TINY_BYTES: Final = 16


class BodyBounds:
    """The bounds of one request's body after another's. Times are the event loop's."""

    __slots__ = ("_began", "_bytes", "_chunks", "_limits", "_silent_bytes")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._began = NEVER
        # In the read at hand.
        self._chunks = 0
        self._bytes = 0
        # Received since the last piece of the body: frames of chunks, and trailer fields.
        self._silent_bytes = 0

    def begin(self, now: float) -> float:
        """Begin a body; return the deadline of its first bytes."""
        self._began, self._silent_bytes = now, 0
        return now + self._limits.send_timeout_s

    def deadline(self, now: float, received_bytes: int) -> float:
        """Return the deadline of the next bytes: of a pause, and of the pace of the whole."""
        allowed = self._limits.body_grace_s + received_bytes / self._limits.body_bytes_per_s
        return min(now + self._limits.send_timeout_s, self._began + allowed)

    def receive(self, count: int) -> None:
        """Count what a read brought, before it is parsed. Raises HeadRefused."""
        self._chunks = self._bytes = 0
        if self._silent_bytes > self._limits.head_bytes:
            raise HeadRefused(431)
        self._silent_bytes += count

    def add_piece(self, size: int) -> None:
        """Count a piece of the body. Raises HeadRefused."""
        self._silent_bytes = 0
        self._chunks += 1
        self._bytes += size
        is_tiny = self._bytes < TINY_BYTES * self._chunks
        if self._chunks > (TINY_CHUNKS_AT_ONCE if is_tiny else CHUNKS_AT_ONCE):
            raise HeadRefused(400)
