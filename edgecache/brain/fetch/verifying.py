"""Bytes from elsewhere, released only when they are what the manifest says."""

import hashlib
from collections.abc import AsyncIterator, Callable

from edgecache.brain.delivery.delivery import Span
from edgecache.brain.errors import OriginChanged
from edgecache.brain.values import CHUNK_BYTES, Manifest


async def verified(
    read: Callable[[Span], AsyncIterator[bytes]], manifest: Manifest, span: Span
) -> AsyncIterator[bytes]:
    """Give a span of what ``read`` gives, each MiB after its digest was found right.

    Raises OriginChanged at the first that is not.
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
