"""Checks that bytes from a worker are correct, before they go on to the client.

IntegrityCheck
├── WholeCheck  all bytes of a blob, against its digest; the last piece waits for the result
├── ChunkCheck  whole chunks, each against its own SHA-256, before it is sent
└── NoCheck     a range of bytes whose digests are not known

A Digest is SHA-256, or CRC-32 against accidental damage only: CRC-32 can be forged.
"""

import hashlib
import zlib
from typing import Final, Protocol

from edgecache.brain.delivery.delivery import Span
from edgecache.brain.values import CHUNK_BYTES

DIGEST_BYTES: Final = 32


class WrongBytes(Exception):
    """The bytes are not those of the blob. has_leaked: some may have gone to the client."""

    def __init__(self, *, has_leaked: bool) -> None:
        super().__init__(has_leaked)
        self.has_leaked = has_leaked


class Digest(Protocol):
    """A running digest of a whole blob, and the value it must have."""

    def update(self, data: bytes) -> None: ...
    def matches(self) -> bool: ...
    def fresh(self) -> "Digest":
        """Return one for the same blob that has seen no bytes yet."""
        ...


class Sha256:
    """Other bytes with the same digest cannot be made."""

    def __init__(self, wanted: bytes) -> None:
        self._wanted = wanted
        self._digest = hashlib.sha256()

    def update(self, data: bytes) -> None:
        self._digest.update(data)

    def matches(self) -> bool:
        return self._digest.digest() == self._wanted

    def fresh(self) -> Digest:
        return Sha256(self._wanted)


class Crc32:
    """A third of the cost of SHA-256; damage goes unnoticed once in four thousand million times."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._value = 0

    def update(self, data: bytes) -> None:
        self._value = zlib.crc32(data, self._value)

    def matches(self) -> bool:
        return self._value == self._wanted

    def fresh(self) -> Digest:
        return Crc32(self._wanted)


class IntegrityCheck(Protocol):
    """Takes the bytes from ``position`` to ``end``; returns those that may be sent.

    After a source broke off, ``change_source`` is called and another one goes on at ``position``.
    """

    position: int
    end: int

    def accept(self, data: bytes) -> bytes:
        """Take the next bytes; return what may be sent, perhaps nothing.

        Raises WrongBytes.
        """
        ...

    def change_source(self) -> None:
        """Discard bytes that cannot be checked without the rest of their source."""
        ...

    def reset(self) -> None:
        """Discard all bytes that were not sent, after WrongBytes that did not leak."""
        ...


class NoCheck:
    """Lets all bytes pass."""

    def __init__(self, span: Span) -> None:
        self.position = span.start
        self.end = span.start + span.length

    def accept(self, data: bytes) -> bytes:
        self.position += len(data)
        return data

    def change_source(self) -> None:
        """Discard nothing."""

    def reset(self) -> None:
        """Discard nothing."""


class WholeCheck:
    """Checks a blob from its first byte to its last."""

    def __init__(self, digest: Digest, size: int) -> None:
        self.position = 0
        self.end = size
        self._digest = digest
        self._held = b""
        self._released = 0

    def accept(self, data: bytes) -> bytes:
        """Return the previous piece; the last one only when the whole blob is correct."""
        self._digest.update(data)
        self.position += len(data)
        if self.position < self.end:
            out, self._held = self._held, data
            self._released += len(out)
            return out
        if not self._digest.matches():
            raise WrongBytes(has_leaked=self._released > 0)
        return self._held + data if self._held else data

    def change_source(self) -> None:
        """Keep the bytes: the digest covers all of them in the end."""

    def reset(self) -> None:
        """Start at the first byte again; nothing was sent yet."""
        self.position = 0
        self._digest = self._digest.fresh()
        self._held = b""


class ChunkCheck:
    """Checks the chunks that a span touches, and returns the span's part of each."""

    def __init__(self, chunks: bytes, span: Span, size: int) -> None:
        self._chunks = chunks
        self._span_start = span.start
        self._span_end = span.start + span.length
        self._size = size
        self.position = span.start // CHUNK_BYTES * CHUNK_BYTES
        self.end = min(-(-self._span_end // CHUNK_BYTES) * CHUNK_BYTES, size)
        self._chunk_start = self.position
        self._pieces: list[bytes] = []
        self._is_wrong = False

    def accept(self, data: bytes) -> bytes:
        """Return the complete and correct chunks; those before a wrong one are sent first."""
        if self._is_wrong:
            self._is_wrong = False
            raise WrongBytes(has_leaked=False)
        released: list[bytes] = []
        while data:
            boundary = min(self._chunk_start + CHUNK_BYTES, self._size)
            piece, data = data[: boundary - self.position], data[boundary - self.position :]
            self._pieces.append(piece)
            self.position += len(piece)
            if self.position < boundary:
                continue
            chunk = b"".join(self._pieces)
            if not self._matches(chunk):
                self.change_source()
                if not released:
                    raise WrongBytes(has_leaked=False)
                self._is_wrong = True
                break
            released.append(self._part(chunk))
        return released[0] if len(released) == 1 else b"".join(released)

    def change_source(self) -> None:
        """Go back to the start of the chunk."""
        self._pieces.clear()
        self.position = self._chunk_start

    def reset(self) -> None:
        """Go back to the start of the chunk."""
        self.change_source()

    def _matches(self, chunk: bytes) -> bool:
        index = self._chunk_start // CHUNK_BYTES
        wanted = self._chunks[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES]
        return hashlib.sha256(chunk).digest() == wanted

    def _part(self, chunk: bytes) -> bytes:
        """Return the span's part of a chunk, and go on to the next chunk."""
        start, self._chunk_start = self._chunk_start, self.position
        self._pieces.clear()
        return chunk[max(self._span_start - start, 0) : self._span_end - start]
