"""Checks that bytes from a worker are correct, before they go on to the client."""

from edgecache.brain.core.blocks import BlockCheck
from edgecache.brain.core.values import Span


class WrongBytes(Exception):
    """The bytes are not those of the blob. None of them was sent."""


class BlockChecks:
    """Checks each block that a span touches against its own digest, and returns the span's part.

    Takes the bytes from ``position`` to ``end``. After a source failed, ``change_source`` is called
    and another one continues at ``position``.
    """

    def __init__(self, matches: BlockCheck, block_bytes: int, span: Span, size: int) -> None:
        """matches: says whether a block is correct. size: of the blob."""
        self._matches = matches
        self._block_bytes = block_bytes
        self._span_start = span.start
        self._span_end = span.start + span.length
        self._size = size
        self.position = span.start // block_bytes * block_bytes
        self.end = min(-(-self._span_end // block_bytes) * block_bytes, size)
        self._block_start = self.position
        self._pieces: list[bytes] = []
        self._is_wrong = False

    def accept(self, data: bytes) -> bytes:
        """Take the next bytes; return the complete and correct blocks, maybe none.

        Raises WrongBytes, after the correct blocks before the wrong one were returned.
        """
        if self._is_wrong:
            self._is_wrong = False
            raise WrongBytes
        released: list[bytes] = []
        while data:
            boundary = min(self._block_start + self._block_bytes, self._size)
            piece, data = data[: boundary - self.position], data[boundary - self.position :]
            self._pieces.append(piece)
            self.position += len(piece)
            if self.position < boundary:
                continue
            block = b"".join(self._pieces)
            if not self._matches(self._block_start // self._block_bytes, block):
                self.change_source()
                if not released:
                    raise WrongBytes
                self._is_wrong = True
                break
            released.append(self._part(block))
        return released[0] if len(released) == 1 else b"".join(released)

    def change_source(self) -> None:
        """Go back to the start of the block."""
        self._pieces.clear()
        self.position = self._block_start

    def _part(self, block: bytes) -> bytes:
        """Return the span's part of a block, and go on to the next block."""
        start, self._block_start = self._block_start, self.position
        self._pieces.clear()
        if self._span_start <= start and self.position <= self._span_end:
            return block
        return block[max(self._span_start - start, 0) : self._span_end - start]
