"""Whether moved bytes are the right ones, and which of them may go on to the client.

Check
├── Whole    all bytes of a blob, against its digest: the last piece waits for the verdict
├── Chunked  whole MiBs, each against its own SHA-256, before anything of it goes on
└── Passing  nothing is known of a range of bytes by itself

A Digest is SHA-256, or CRC-32 where only chance can be at work: a stranger could forge it.
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
    """What the bytes of a whole blob are held against."""

    def update(self, data: bytes) -> None:
        """Take the next bytes."""
        ...

    def is_right(self) -> bool:
        """Say whether these were the blob's bytes."""
        ...

    def afresh(self) -> "Digest":
        """Give one for the same blob that has taken nothing yet."""
        ...


class Sha256:
    """Nobody can make other bytes that pass."""

    def __init__(self, wanted: bytes) -> None:
        self._wanted = wanted
        self._digest = hashlib.sha256()

    def update(self, data: bytes) -> None:
        """Take the next bytes."""
        self._digest.update(data)

    def is_right(self) -> bool:
        """Compare."""
        return self._digest.digest() == self._wanted

    def afresh(self) -> Digest:
        """Begin again."""
        return Sha256(self._wanted)


class Crc32:
    """Other bytes pass once in four thousand million times, at a third of the cost of SHA-256."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._value = 0

    def update(self, data: bytes) -> None:
        """Take the next bytes."""
        self._value = zlib.crc32(data, self._value)

    def is_right(self) -> bool:
        """Compare."""
        return self._value == self._wanted

    def afresh(self) -> Digest:
        """Begin again."""
        return Crc32(self._wanted)


class Check(Protocol):
    """Takes bytes from ``position`` on; gives those that may go on.

    A source that breaks off is followed by another one at ``position``, after ``restart``.
    """

    position: int
    end: int

    def take(self, data: bytes) -> bytes:
        """Take the next bytes; give what may go on, perhaps nothing.

        Raises WrongBytes.
        """
        ...

    def restart(self) -> None:
        """Forget what came and cannot be told right from wrong: another source goes on."""
        ...

    def start_over(self) -> None:
        """Forget all that was not let through, after WrongBytes that did not leak."""
        ...


class Passing:
    """Lets everything through."""

    def __init__(self, span: Span) -> None:
        self.position = span.start
        self.end = span.start + span.length

    def take(self, data: bytes) -> bytes:
        """Let it through."""
        self.position += len(data)
        return data

    def restart(self) -> None:
        """Go on."""

    def start_over(self) -> None:
        """Go on."""


class Whole:
    """Checks a blob from its first byte to its last."""

    def __init__(self, digest: Digest, size: int) -> None:
        self.position = 0
        self.end = size
        self._digest = digest
        self._held = b""
        self._released = 0

    def take(self, data: bytes) -> bytes:
        """Give the piece before; the last one only once the whole is right."""
        self._digest.update(data)
        self.position += len(data)
        if self.position < self.end:
            out, self._held = self._held, data
            self._released += len(out)
            return out
        if not self._digest.is_right():
            raise WrongBytes(has_leaked=self._released > 0)
        return self._held + data if self._held else data

    def restart(self) -> None:
        """Go on: what came counts until the digest says otherwise."""

    def start_over(self) -> None:
        """Begin again, where nothing was released yet."""
        self.position = 0
        self._digest = self._digest.afresh()
        self._held = b""


class Chunked:
    """Checks the MiBs that a span touches, and releases the span's part of each."""

    def __init__(self, chunks: bytes, span: Span, size: int) -> None:
        self._chunks = chunks
        self._span_start = span.start
        self._span_end = span.start + span.length
        self._size = size
        self.position = span.start // CHUNK_BYTES * CHUNK_BYTES
        self.end = min(-(-self._span_end // CHUNK_BYTES) * CHUNK_BYTES, size)
        self._begun = self.position
        self._pieces: list[bytes] = []
        self._is_wrong = False

    def take(self, data: bytes) -> bytes:
        """Give the chunks that are complete and right; those before a wrong one go out first."""
        if self._is_wrong:
            self._is_wrong = False
            raise WrongBytes(has_leaked=False)
        released: list[bytes] = []
        while data:
            boundary = min(self._begun + CHUNK_BYTES, self._size)
            piece, data = data[: boundary - self.position], data[boundary - self.position :]
            self._pieces.append(piece)
            self.position += len(piece)
            if self.position < boundary:
                continue
            chunk = b"".join(self._pieces)
            if not self._is_right(chunk):
                self.restart()
                if not released:
                    raise WrongBytes(has_leaked=False)
                self._is_wrong = True
                break
            released.append(self._part(chunk))
        return released[0] if len(released) == 1 else b"".join(released)

    def restart(self) -> None:
        """Go back to the beginning of the chunk."""
        self._pieces.clear()
        self.position = self._begun

    def start_over(self) -> None:
        """Go back to the beginning of the chunk."""
        self.restart()

    def _is_right(self, chunk: bytes) -> bool:
        index = self._begun // CHUNK_BYTES
        wanted = self._chunks[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES]
        return hashlib.sha256(chunk).digest() == wanted

    def _part(self, chunk: bytes) -> bytes:
        """Give what the span has of a chunk, and go on to the next one."""
        begun, self._begun = self._begun, self.position
        self._pieces.clear()
        return chunk[max(self._span_start - begun, 0) : self._span_end - begun]
