"""A memory cache of small objects that are read often; their bytes are verified on the way in."""

import hashlib
import threading
from typing import Final

from edgecache.runtime.bounded_cache import BoundedCache

LIMIT_BYTES: Final = 64 << 20
OBJECT_LIMIT_BYTES: Final = 128 << 10
# Memory of an entry in addition to its bytes, so that many tiny objects cannot exceed the limit.
ENTRY_BYTES: Final = 352
# Hashes of recent reads: an object is stored when it is read a second time.
SEEN_LIMIT: Final = 16_384


class HotCache:
    """The most read small objects of one process, in fair parts for their organizations.

    Bytes are compared with their hash before they are stored, so reads from memory are correct
    even if the disk has changed them since. A caller that removes a file has to ``drop`` it here.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        """Hold nothing yet. limit_bytes: of all objects, each with its entry."""
        # With the organization that each counts for.
        self._objects: BoundedCache[bytes, tuple[int, bytes]] = BoundedCache(
            limit_bytes,
            lambda _, entry: ENTRY_BYTES + len(entry[1]),
            owner_of=lambda _, entry: entry[0],
        )
        # Whether the bytes were right.
        self._seen: BoundedCache[bytes, tuple[int, bool]] = BoundedCache(
            SEEN_LIMIT, owner_of=lambda _, entry: entry[0]
        )
        self._lock = threading.Lock()
        self.drops = 0

    def __contains__(self, sha256: bytes) -> bool:
        """True if an object is here."""
        return sha256 in self._objects

    def get(self, sha256: bytes) -> bytes | None:
        """Return an object's bytes, None when it is not here."""
        with self._lock:
            entry = self._objects.get(sha256)
            return None if entry is None else entry[1]

    def offer(
        self,
        sha256: bytes,
        data: bytes | bytearray,
        *,
        organization_id: int,
        drops: int | None = None,
    ) -> None:
        """Store bytes that were just read, if they are correct and were read before.

        organization_id: the object counts in its part of the memory, whoever reads it later.
        drops: the value before the read, if objects are dropped concurrently: an object that was
        removed in between must not return.
        """
        if len(data) > OBJECT_LIMIT_BYTES or not self._is_wanted(sha256, organization_id):
            return
        if hashlib.sha256(data).digest() != sha256:
            # The scrub will handle it; here it is not checked again for a while.
            self._seen.put(sha256, (organization_id, False))
            return
        with self._lock:
            if drops not in {None, self.drops} or sha256 in self._objects:
                return
            self._objects.put(sha256, (organization_id, bytes(data)))

    def keep(self, name: bytes, data: bytes, *, organization_id: int) -> None:
        """Store what was made of an object's bytes. name: longer than a hash."""
        with self._lock:
            self._objects.put(name, (organization_id, data))

    def drop(self, sha256: bytes) -> None:
        """Forget an object whose file is about to be removed or replaced. From any thread."""
        with self._lock:
            self.drops += 1
            self._objects.pop(sha256)

    def _is_wanted(self, sha256: bytes, organization_id: int) -> bool:
        """True if it was seen before, and is not known to be wrong. For one thread alone."""
        seen = self._seen.get(sha256)
        if seen is None:
            self._seen.put(sha256, (organization_id, True))
            return False
        return seen[1]
