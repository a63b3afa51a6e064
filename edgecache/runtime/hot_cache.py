"""A memory cache of small objects that are read often; their bytes are verified on the way in."""

import hashlib
import threading
from typing import Final

from edgecache.runtime.fair_cache import FairCache

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
        self._objects: FairCache[bytes, bytes] = FairCache(limit_bytes)
        self._seen: FairCache[bytes, bool] = FairCache(SEEN_LIMIT)
        self._lock = threading.Lock()
        self.drops = 0

    def __contains__(self, sha256: bytes) -> bool:
        """True if an object is here."""
        return sha256 in self._objects

    def get(self, sha256: bytes) -> bytes | None:
        """Return an object's bytes, None when it is not here."""
        with self._lock:
            return self._objects.get(sha256)

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
            self._seen.put(organization_id, sha256, False)
            return
        with self._lock:
            if drops not in {None, self.drops} or sha256 in self._objects:
                return
            cost = ENTRY_BYTES + len(data)
            self._objects.put(organization_id, sha256, bytes(data), cost=cost)

    def drop(self, sha256: bytes) -> None:
        """Forget an object whose file is about to be removed or replaced. From any thread."""
        with self._lock:
            self.drops += 1
            self._objects.pop(sha256)

    def _is_wanted(self, sha256: bytes, organization_id: int) -> bool:
        """True if it was seen before, and is not known to be wrong. For one thread alone."""
        is_right = self._seen.get(sha256)
        if is_right is None:
            self._seen.put(organization_id, sha256, True)
            return False
        return is_right
