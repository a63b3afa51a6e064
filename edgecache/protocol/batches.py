"""Many small blobs in one message to a worker: an index, then their bytes one after another.

The index is a count and, for each blob, its SHA-256 and its size. A ticket of kind ``store_batch``
names the index by its hash, so it is good for exactly these bytes.
"""

import hashlib
import struct
from collections.abc import Mapping
from typing import Final

BATCH_PATH: Final = "/batch"
BATCH_BLOBS: Final = 64
# Maximum size of a message, which a worker holds in memory.
BATCH_BYTES: Final = 2**20
# Larger blobs are sent by themselves.
BATCHED_BYTES: Final = 2**17

_COUNT: Final = struct.Struct(">H")
_ENTRY: Final = struct.Struct(">32sI")
MESSAGE_BYTES: Final = _COUNT.size + BATCH_BLOBS * _ENTRY.size + BATCH_BYTES


class MalformedBatch(Exception):
    """The bytes are not a batch."""


def encode(blobs: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return the index and the whole message. blobs: bytes by their SHA-256."""
    entries = [_ENTRY.pack(sha256, len(data)) for sha256, data in blobs.items()]
    index = b"".join((_COUNT.pack(len(entries)), *entries))
    return index, b"".join((index, *blobs.values()))


def decode(message: bytes) -> tuple[bytes, dict[bytes, memoryview]]:
    """Return the index and the blobs, without verifying their bytes. Raises MalformedBatch."""
    try:
        (count,) = _COUNT.unpack_from(message)
        end = _COUNT.size + count * _ENTRY.size
        entries = list(_ENTRY.iter_unpack(message[_COUNT.size : end]))
    except struct.error:
        raise MalformedBatch from None
    sizes = sum(size for _, size in entries)
    if not 0 < count <= BATCH_BLOBS or len(entries) != count or len(message) != end + sizes:
        raise MalformedBatch
    blobs: dict[bytes, memoryview] = {}
    view, position = memoryview(message), end
    for sha256, size in entries:
        blobs[sha256] = view[position : position + size]
        position += size
    return message[:end], blobs


def name_of(index: bytes) -> bytes:
    """Return what a ticket calls a batch."""
    return hashlib.sha256(index).digest()
