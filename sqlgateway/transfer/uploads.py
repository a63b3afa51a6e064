"""Read the body of a request as a stream, with gzip and limits."""

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from common.errors import InvalidRequest, PayloadTooLarge, UnsupportedMedia
from sqlgateway.errors import UploadInterrupted
from sqlgateway.transfer.minimum_rate import Transfer

PIECE_BYTES: Final = 64 * 1024
# 16 selects the gzip format, with its checksum; added to zlib's largest window.
GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
# A gzip body can have many members. An empty one takes time, but does not count towards the size
# limit. So after FREE_MEMBERS, members must contain MEMBER_BYTES on average.
FREE_MEMBERS: Final = 1000
MEMBER_BYTES: Final = 1024
ENCODINGS: Final = frozenset({"", "identity", "gzip"})


class UploadedBody:
    """A body that is read once, piece by piece.

    This reads from the web server, because Django treats a body of unknown length (chunked) as
    empty, and DRF would read any other body into memory.

    size_bytes: the bytes that were yielded, unpacked.
    """

    def __init__(self, environ: Mapping[str, Any], *, limit_bytes: int) -> None:
        self._stream = environ["wsgi.input"]
        self._left = _length(environ)
        self._limit_bytes = limit_bytes
        encoding = environ.get("HTTP_CONTENT_ENCODING", "").strip().lower()
        if encoding not in ENCODINGS:
            raise UnsupportedMedia("The content encodings here are gzip and identity.")
        self._is_packed = encoding == "gzip"
        self.size_bytes = 0

    def pieces(self, transfer: Transfer) -> Iterator[bytes]:
        """Yield the body in pieces of at most PIECE_BYTES.

        Raises UploadInterrupted (the client stopped early or was too slow), PayloadTooLarge, and
        InvalidRequest for gzip that cannot be unpacked.
        """
        raw = self._raw(transfer)
        for piece in _unpacked(raw) if self._is_packed else raw:
            self.size_bytes += len(piece)
            if self.size_bytes > self._limit_bytes:
                raise PayloadTooLarge(f"The limit here is {self._limit_bytes} bytes.")
            if piece:
                yield piece

    def _raw(self, transfer: Transfer) -> Iterator[bytes]:
        while self._left is None or self._left > 0:
            size = PIECE_BYTES if self._left is None else min(PIECE_BYTES, self._left)
            try:
                with transfer.time_limit(size):
                    piece = self._stream.read(size)
            except OSError:
                # gunicorn's errors for incomplete or malformed chunks are OSErrors, too.
                raise _interrupted(transfer) from None
            if transfer.has_ended_late:
                raise _interrupted(transfer)
            if self._left is not None:
                self._left -= len(piece)
                if len(piece) < size:
                    raise UploadInterrupted
            elif not piece:
                return
            yield piece


def _interrupted(transfer: Transfer) -> UploadInterrupted:
    return UploadInterrupted("It came too slowly." if transfer.has_ended_late else "")


def _length(environ: Mapping[str, Any]) -> int | None:
    """Return the length of the body; None if it is unknown (chunked)."""
    given = environ.get("CONTENT_LENGTH", "")
    if given:
        return int(given) if given.isascii() and given.isdecimal() else 0
    # Unless the web server sets this, a read past the body would wait for the next request.
    return None if environ.get("wsgi.input_terminated") else 0


def _unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the contents of gzip members, in pieces of at most PIECE_BYTES."""
    unpacker = zlib.decompressobj(GZIP_WINDOW)
    members, size_bytes = 1, 0
    for piece in pieces:
        packed = piece
        while packed:
            if unpacker.eof:
                members += 1
                if members > FREE_MEMBERS + size_bytes // MEMBER_BYTES:
                    raise InvalidRequest("The body has too many gzip members.")
                unpacker = zlib.decompressobj(GZIP_WINDOW)
            try:
                unpacked = unpacker.decompress(packed, PIECE_BYTES)
            except zlib.error:
                raise InvalidRequest("The body is not gzip.") from None
            size_bytes += len(unpacked)
            yield unpacked
            packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    # The last piece of input may contain more than one piece of output.
    while not unpacker.eof and (rest := unpacker.decompress(b"", PIECE_BYTES)):
        yield rest
    if not unpacker.eof:
        raise UploadInterrupted("The gzip stream ends early.")
