"""The digests of a blob's blocks, as its manifest has them.

For each 128 KiB its SHA-256 (32 bytes), then its CRC-32C (4 bytes, big-endian). SHA-256 cannot be
forged; CRC-32C finds accidental damage at a fiftieth of its processor time.
Manifests of an earlier release have the SHA-256 of each MiB alone.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from awscrt import checksums as crt

from edgecache.brain.core.values import Span

BLOCK_BYTES: Final = 2**17
SHA256_BYTES: Final = 32
CRC32C_BYTES: Final = 4
ENTRY_BYTES: Final = SHA256_BYTES + CRC32C_BYTES
EARLIER_BLOCK_BYTES: Final = 2**20

# True if these are the bytes of the block with this number.
BlockCheck = Callable[[int, bytes], bool]


def entry(block_sha256: bytes, block_crc32c: int) -> bytes:
    """Return a block's entry in a manifest."""
    return block_sha256 + block_crc32c.to_bytes(CRC32C_BYTES, "big")


class Blocks:
    """The digests of one blob's blocks. block_bytes: the size of each except the last one."""

    __slots__ = ("_entries", "_entry_bytes", "_size", "block_bytes")

    def __init__(self, entries: bytes, size: int) -> None:
        """entries: as the manifest has them. size: of the blob."""
        is_earlier = len(entries) != -(-size // BLOCK_BYTES) * ENTRY_BYTES
        self.block_bytes = EARLIER_BLOCK_BYTES if is_earlier else BLOCK_BYTES
        self._entry_bytes = SHA256_BYTES if is_earlier else ENTRY_BYTES
        self._entries = entries
        self._size = size

    def touched_by(self, span: Span) -> Span:
        """Return the whole blocks that a span touches."""
        start = span.start // self.block_bytes * self.block_bytes
        end = -(-(span.start + span.length) // self.block_bytes) * self.block_bytes
        return Span(start, min(end, self._size) - start)

    def has_sha256(self, number: int, block: bytes) -> bool:
        """True if a block has its SHA-256."""
        at = number * self._entry_bytes
        return hashlib.sha256(block).digest() == self._entries[at : at + SHA256_BYTES]

    def has_crc32c(self, number: int, block: bytes) -> bool:
        """True if a block has its CRC-32C; its SHA-256 where the manifest has no other."""
        if self._entry_bytes == SHA256_BYTES:
            return self.has_sha256(number, block)
        at = number * ENTRY_BYTES + SHA256_BYTES
        wanted = self._entries[at : at + CRC32C_BYTES]
        return bool(crt.crc32c(block) == int.from_bytes(wanted, "big"))
