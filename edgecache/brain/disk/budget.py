"""The budget of a brain's disk: unfinished bodies and parts of uploads, shared by organization."""

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from edgecache.brain.core.errors import StorageFull
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.disk.buffers import Buffers
from edgecache.runtime.fair_shares import ShareKey, Shares

PARTS: Final = "parts"
# How many parts' sizes this process remembers.
PARTS_KEPT: Final = 100_000


class CachedBlobUsage:
    """Bytes of cached blobs on disk, approximately.

    This brain's part of those that were there when they were last counted, and what it has added.
    """

    def __init__(self, brains: int) -> None:
        self.bytes = 0
        self._brains = brains
        # Blobs are added and removed on threads.
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        """Count a blob in, or out with a negative size."""
        with self._lock:
            self.bytes = max(0, self.bytes + size)

    def found(self, size: int) -> None:
        """Set the size that was found on disk."""
        with self._lock:
            self.bytes = size // self._brains


class DiskBudget:
    """Bytes on disk, and those of bodies in memory, which may have to go there."""

    def __init__(self, limit_bytes: int, buffers: Buffers) -> None:
        self.limit_bytes = limit_bytes
        self._buffers = buffers
        self._shares = Shares(limit_bytes, refusal=StorageFull)
        # This process's parts: who is charged for each, and its size.
        self._parts: dict[str, tuple[ShareKey, int]] = {}
        # Parts without a row yet, which a count of rows does not find.
        self._without_row: set[str] = set()
        self._counted: frozenset[int] = frozenset()
        # Received files: who is charged for each until it is moved or removed, and its size.
        self._files: dict[Path, tuple[ShareKey, int]] = {}

    def take(self, share_key: ShareKey, count: int, *, wanted_bytes: int = 0) -> None:
        """Count received bytes. wanted_bytes: the size of the whole body, if known.

        Raises StorageFull.
        """
        if self._shares.taken + self._buffers.used_bytes + count > self.limit_bytes:
            # Cached blobs do not count here: garbage collection evicts as many as necessary.
            raise self._full("staging", wanted_bytes or count)
        if not self._shares.try_take(share_key, count):
            raise self._full("organization", wanted_bytes or count)

    def max_multipart_object_bytes(self, *, parts_are_local: bool) -> int:
        """Return the largest body of a bucket that can be made of parts.

        parts_are_local: they are files of the data directory, and so need the same room again: a
        bucket then has half of what the parts leave of the organization's half.
        """
        return self.limit_bytes // (6 if parts_are_local else 4)

    def give_back(self, share_key: ShareKey, count: int) -> None:
        """Count bytes out."""
        if count:
            self._shares.give_back(share_key, count)

    def charge_file(self, path: Path, share_key: ShareKey, size: int) -> None:
        """Note what bytes that were counted in have become."""
        self._files[path] = (share_key, size)

    def give_back_file(self, path: Path) -> int:
        """Count a received file out; return its size, 0 if it is not counted any more."""
        share_key, size = self._files.pop(path, ((), 0))
        self.give_back(share_key, size)
        return size

    def has_room_for_part(self, size: int) -> bool:
        """True if a part of this size fits now."""
        return self.has_room((SHARE_KEY.get()[0], PARTS), size)

    def has_room(self, share_key: ShareKey, size: int) -> bool:
        """True if this many bytes fit now."""
        if not self._shares.try_take(share_key, size):
            return False
        self._shares.give_back(share_key, size)
        return self._shares.taken + self._buffers.used_bytes + size <= self.limit_bytes

    def take_part(self, name: str, size: int) -> None:
        """Count a part of an upload in. Raises StorageFull."""
        share_key: ShareKey = (SHARE_KEY.get()[0], PARTS)
        self.take(share_key, size)
        self._parts[name] = (share_key, size)
        self._without_row.add(name)
        if len(self._parts) > PARTS_KEPT:
            # Removed by another process, or an old one, which the next count finds removed as well.
            del self._parts[next(iter(self._parts))]

    def give_back_part(self, name: str) -> None:
        """Count a part out; one of another process is counted out with ``count_parts``."""
        share_key, size = self._parts.pop(name, ((), 0))
        # A count that ran concurrently may have left it out.
        self.give_back(share_key, min(size, self._shares.held(share_key)))

    def note_row(self, name: str) -> None:
        """Note that a part has its row, or that it gets none."""
        self._without_row.discard(name)

    def parts_without_row(self) -> Counter[int]:
        """Return the bytes of this process's parts that have no row yet, by organization."""
        found: Counter[int] = Counter()
        for name in self._without_row:
            share_key, size = self._parts.get(name, ((0,), 0))
            found[cast(int, share_key[0])] += size
        return found

    def count_parts(self, by_organization: Mapping[int, int]) -> None:
        """Note this brain's part of the bytes of all parts."""
        for organization_id in self._counted.union(by_organization):
            size = by_organization.get(organization_id, 0)
            self._shares.correct((organization_id, PARTS), size)
        self._counted = frozenset(by_organization)

    def _full(self, pool: str, wanted_bytes: int) -> StorageFull:
        return StorageFull(pool=pool, limit_bytes=self.limit_bytes, wanted_bytes=wanted_bytes)
