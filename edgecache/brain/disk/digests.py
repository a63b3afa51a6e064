"""Digests of bytes: computed while they are received, checked while they are read."""

import hashlib
import zlib
from collections.abc import AsyncIterator, Callable

from awscrt import checksums as crt

from edgecache.brain.core import blocks
from edgecache.brain.core.blocks import BLOCK_BYTES, Blocks
from edgecache.brain.core.errors import OriginChanged
from edgecache.brain.core.values import BlobManifest, Span


class Digests:
    """SHA-256, MD5 and CRC32 of the whole, SHA-256 and CRC-32C of every block, in one pass."""

    __slots__ = ("_block", "_block_crc32c", "_blocks", "_crc32", "_md5", "_room", "_whole", "size")

    def __init__(self) -> None:
        self.size = 0
        self._whole = hashlib.sha256()
        self._block = hashlib.sha256()
        self._block_crc32c = 0
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._blocks: list[bytes] = []
        self._crc32 = 0
        self._room = BLOCK_BYTES

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        self.size += len(data)
        self._whole.update(data)
        self._md5.update(data)
        self._crc32 = zlib.crc32(data, self._crc32)
        view = memoryview(data)
        while view:
            piece = view[: self._room]
            self._block.update(piece)
            self._block_crc32c = crt.crc32c(piece, self._block_crc32c)
            self._room -= len(piece)
            if not self._room:
                self._close_block()
            view = view[len(piece) :]

    def manifest(self) -> BlobManifest:
        """Return the digests of all bytes; ``update`` must not be called afterwards."""
        if self._room < BLOCK_BYTES:
            self._close_block()
        return BlobManifest(
            self._whole.digest(),
            self.size,
            self._md5.digest(),
            self._crc32,
            b"".join(self._blocks),
        )

    def _close_block(self) -> None:
        self._blocks.append(blocks.entry(self._block.digest(), self._block_crc32c))
        self._block = hashlib.sha256()
        self._block_crc32c = 0
        self._room = BLOCK_BYTES


def manifest_of(data: bytes) -> BlobManifest:
    """Return the digests of bytes in memory."""
    if len(data) > BLOCK_BYTES or not data:
        digests = Digests()
        digests.update(data)
        return digests.manifest()
    # The only block is the whole.
    whole = hashlib.sha256(data).digest()
    md5 = hashlib.md5(data, usedforsecurity=False).digest()
    block = blocks.entry(whole, crt.crc32c(data))
    return BlobManifest(whole, len(data), md5, zlib.crc32(data), block)


async def verified(
    read: Callable[[Span], AsyncIterator[bytes]], manifest: BlobManifest, span: Span
) -> AsyncIterator[bytes]:
    """Yield a span of what ``read`` yields, each block after its SHA-256 was checked.

    Raises OriginChanged at the first block with another digest.
    """
    digests = Blocks(manifest.chunks, manifest.size)
    block_bytes = digests.block_bytes
    whole = digests.touched_by(span)
    position, end = whole.start, span.start + span.length
    async for block in _in_blocks(read(whole), block_bytes):
        if not digests.has_sha256(position // block_bytes, block):
            raise OriginChanged
        yield block[max(span.start - position, 0) : end - position]
        position += len(block)
    if position < whole.start + whole.length:
        raise OriginChanged


async def _in_blocks(pieces: AsyncIterator[bytes], block_bytes: int) -> AsyncIterator[bytes]:
    held = bytearray()
    async for piece in pieces:
        held += piece
        while len(held) >= block_bytes:
            yield bytes(held[:block_bytes])
            del held[:block_bytes]
    if held:
        yield bytes(held)
