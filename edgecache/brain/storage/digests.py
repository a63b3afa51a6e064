"""Digests of bytes: computed while they are received, checked while they are read."""

import hashlib
import zlib
from collections.abc import AsyncIterator, Callable

from edgecache.brain.delivery.delivery import Span
from edgecache.brain.errors import OriginChanged
from edgecache.brain.values import CHUNK_BYTES, Manifest


class Digests:
    """SHA-256 of the whole and of every MiB, MD5 and CRC32, in one pass."""

    __slots__ = ("_chunk", "_chunks", "_crc32", "_md5", "_room", "_whole", "size")

    def __init__(self) -> None:
        self.size = 0
        self._whole = hashlib.sha256()
        self._chunk = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._chunks: list[bytes] = []
        self._crc32 = 0
        self._room = CHUNK_BYTES

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        self.size += len(data)
        self._whole.update(data)
        self._md5.update(data)
        self._crc32 = zlib.crc32(data, self._crc32)
        view = memoryview(data)
        while view:
            piece = view[: self._room]
            self._chunk.update(piece)
            self._room -= len(piece)
            if not self._room:
                self._close_chunk()
            view = view[len(piece) :]

    def manifest(self) -> Manifest:
        """Return the digests of all bytes; ``update`` must not be called afterwards."""
        if self._room < CHUNK_BYTES:
            self._close_chunk()
        return Manifest(
            self._whole.digest(),
            self.size,
            self._md5.digest(),
            self._crc32,
            b"".join(self._chunks),
        )

    def _close_chunk(self) -> None:
        self._chunks.append(self._chunk.digest())
        self._chunk = hashlib.sha256()
        self._room = CHUNK_BYTES


async def verified(
    read: Callable[[Span], AsyncIterator[bytes]], manifest: Manifest, span: Span
) -> AsyncIterator[bytes]:
    """Yield a span of what ``read`` yields, each MiB after its digest was checked.

    Raises OriginChanged at the first MiB with another digest.
    """
    end = span.start + span.length
    first = span.start // CHUNK_BYTES * CHUNK_BYTES
    last = min(-(-end // CHUNK_BYTES) * CHUNK_BYTES, manifest.size)
    position = first
    async for chunk in _in_chunks(read(Span(first, last - first))):
        number = position // CHUNK_BYTES
        digest = manifest.chunks[number * 32 : number * 32 + 32]
        if hashlib.sha256(chunk).digest() != digest:
            raise OriginChanged
        yield chunk[max(span.start - position, 0) : end - position]
        position += len(chunk)


async def _in_chunks(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    held = bytearray()
    async for piece in pieces:
        held += piece
        while len(held) >= CHUNK_BYTES:
            yield bytes(held[:CHUNK_BYTES])
            del held[:CHUNK_BYTES]
    if held:
        yield bytes(held)
