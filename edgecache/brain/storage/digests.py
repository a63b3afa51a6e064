"""Digests of bytes as they pass."""

import hashlib
import zlib

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
        """Take the next bytes."""
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
        """Give the digests of all that passed; nothing may pass afterwards."""
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
