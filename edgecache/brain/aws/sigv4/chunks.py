"""Bodies in ``aws-chunked``: chunks that may be signed, and may be followed by a trailer.

Source: AWS, "Signature Calculations for the Authorization Header: Transferring Payload in Multiple
Chunks", and "… with trailing headers".
"""

import hashlib
import hmac
import re
from collections.abc import AsyncIterator
from typing import Final

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.sigv4.canonical import signature
from edgecache.brain.aws.sigv4.verification import StreamSigning

SIGNED: Final = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER: Final = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER: Final = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
STREAMING: Final = frozenset((SIGNED, SIGNED_TRAILER, UNSIGNED_TRAILER))

LINE_LIMIT_BYTES: Final = 1024
TRAILER_LIMIT: Final = 8
# AWS's own limit, so clients respect it. The overhead of smaller chunks would exceed their bytes.
MIN_CHUNK_BYTES: Final = 8192
_EMPTY_HASH: Final = hashlib.sha256().hexdigest()
_HEAD: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;chunk-signature=([0-9a-f]{64}))?")
_TRAILER_SIGNATURE: Final = "x-amz-trailer-signature"


class Chunks:
    """Decodes a body. Iterating yields the bytes; afterwards ``trailers`` contains the trailer.

    A chunk's bytes are yielded before its signature is checked: a body must not be used unless the
    iteration ends normally.
    Raises S3Error: SignatureDoesNotMatch, IncompleteBody, InvalidChunkSizeError,
    MalformedTrailerError.
    """

    def __init__(
        self,
        source: AsyncIterator[bytes],
        *,
        encoding: str,
        stream_signing: StreamSigning,
        decoded_bytes: int,
    ) -> None:
        self.trailers: dict[str, str] = {}
        self._source = source
        self._seal = stream_signing
        self._is_signed = encoding != UNSIGNED_TRAILER
        self._has_trailer = encoding != SIGNED
        self._left = decoded_bytes
        self._buffer = bytearray()
        self._previous = stream_signing.seed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        is_last = False
        while True:
            size, claimed = await self._head()
            if size and is_last:
                raise S3Error(
                    "InvalidChunkSizeError",
                    f"Only the last chunk may have less than {MIN_CHUNK_BYTES} bytes.",
                )
            is_last = size < MIN_CHUNK_BYTES
            if size > self._left:
                raise S3Error("InvalidChunkSizeError", "The chunks are longer than announced.")
            self._left -= size
            digest = hashlib.sha256() if self._is_signed else None
            async for piece in self._data(size):
                if digest is not None:
                    digest.update(piece)
                yield piece
            if digest is not None:
                self._check(digest.hexdigest(), claimed)
            if size == 0:
                break
            await self._expect_line(b"")
        if self._left:
            raise S3Error("IncompleteBody")
        await self._end()

    async def _head(self) -> tuple[int, str]:
        match = _HEAD.fullmatch(await self._line())
        if match is None or (match[2] is None) == self._is_signed:
            raise S3Error("InvalidChunkSizeError")
        return int(match[1], 16), (match[2] or b"").decode()

    async def _data(self, size: int) -> AsyncIterator[bytes]:
        while size:
            if not self._buffer and not await self._more():
                raise S3Error("IncompleteBody")
            piece = bytes(self._buffer[:size])
            del self._buffer[: len(piece)]
            size -= len(piece)
            yield piece

    def _check(self, digest: str, claimed: str) -> None:
        text = "\n".join(
            (
                "AWS4-HMAC-SHA256-PAYLOAD",
                self._seal.amz_date,
                self._seal.scope,
                self._previous,
                _EMPTY_HASH,
                digest,
            )
        )
        self._previous = self._expect_signature(text, claimed)

    async def _end(self) -> None:
        """Parse the trailer, and check that nothing follows."""
        lines: list[tuple[str, str]] = []
        while line := await self._line(is_last=True):
            name, separator, value = line.decode("latin-1").partition(":")
            if not self._has_trailer or not separator or len(lines) >= TRAILER_LIMIT:
                raise S3Error("MalformedTrailerError")
            lines.append((name.strip().lower(), value.strip()))
        claimed = [value for name, value in lines if name == _TRAILER_SIGNATURE]
        found = [line for line in lines if line[0] != _TRAILER_SIGNATURE]
        if len(dict(found)) != len(found) or len(claimed) > 1:
            raise S3Error("MalformedTrailerError")
        if self._is_signed and self._has_trailer:
            self._check_trailer(found, claimed[0] if claimed else "")
        self.trailers = dict(found)
        if self._buffer or await self._more():
            raise S3Error("IncompleteBody", "Bytes follow the last chunk.")

    def _check_trailer(self, found: list[tuple[str, str]], claimed: str) -> None:
        canonical = "".join(f"{name}:{value}\n" for name, value in sorted(found))
        text = "\n".join(
            (
                "AWS4-HMAC-SHA256-TRAILER",
                self._seal.amz_date,
                self._seal.scope,
                self._previous,
                hashlib.sha256(canonical.encode("latin-1")).hexdigest(),
            )
        )
        self._expect_signature(text, claimed)

    def _expect_signature(self, text: str, claimed: str) -> str:
        wanted = signature(self._seal.key, text)
        if not hmac.compare_digest(wanted.encode(), claimed.encode("latin-1")):
            raise S3Error("SignatureDoesNotMatch")
        return wanted

    async def _expect_line(self, wanted: bytes) -> None:
        if await self._line() != wanted:
            raise S3Error("InvalidChunkSizeError")

    async def _line(self, *, is_last: bool = False) -> bytes:
        """Return the next line. is_last: the body may end instead."""
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > LINE_LIMIT_BYTES:
                raise S3Error("InvalidChunkSizeError")
            if not await self._more():
                if is_last and not self._buffer:
                    return b""
                raise S3Error("IncompleteBody")
        if end > LINE_LIMIT_BYTES:
            raise S3Error("InvalidChunkSizeError")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    async def _more(self) -> bool:
        async for piece in self._source:
            self._buffer += piece
            return True
        return False
