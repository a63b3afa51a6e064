"""The directory in memory, as bounded caches over PostgreSQL: versions of keys, holders of blobs.

Entries are tuples of immutable values, which the garbage collector does not walk and which take
little memory, so there can be a million of them. A purge by prefix does not walk them either: it
adds a tombstone, which hides them immediately, and they are removed in small steps.
"""

import struct
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson

from edgecache.brain.core.values import Name, ObjectVersion
from edgecache.runtime.bounded_cache import BoundedCache, Memo

# numbers, sha256, etag, content type, extras as JSON
Packed = tuple[bytes, bytes, str, str, bytes]

# generation, size, last modified and cached at in microseconds, CRC-32 or -1
NUMBERS: Final = struct.Struct("<qqqqq")
# Measured: bytes of one entry without its texts (benchmarks/cache/cache_index.py).
VERSION_ENTRY_BYTES: Final = 480

# Measured: bytes of one entry (benchmarks/cache/cache_index.py); the hash is shared with the index.
HOLDERS_ENTRY_BYTES: Final = 90
SETS_SHARED: Final = 100_000
SWEEP_STEP: Final = 1_000
EPOCH: Final = datetime.fromtimestamp(0, UTC)
MICROSECOND: Final = timedelta(microseconds=1)


class Tombstone(NamedTuple):
    """Entries under the prefix with an older generation do not count any more."""

    prefix: str
    generation: int


class KeyVariants:
    """The variants of keys that have names in a collection, for changes of a key.

    by_key: those that are not empty, by (bucket, key); names without a variant take no memory.
    """

    def __init__(self) -> None:
        self.by_key: dict[tuple[int, str], set[str]] = {}

    def add(self, name: Name) -> None:
        """Note that a name is in the collection."""
        if name[2]:
            self.by_key.setdefault(name[:2], set()).add(name[2])

    def discard(self, name: Name) -> None:
        """Note that a name is not in the collection any more."""
        if not name[2]:
            return
        others = self.by_key.get(name[:2], set())
        others.discard(name[2])
        if not others:
            self.by_key.pop(name[:2], None)

    def names(self, bucket_id: int, key: str) -> list[Name]:
        """Return all names of a key that may be in the collection."""
        variants = ("", *self.by_key.get((bucket_id, key), ()))
        return [(bucket_id, key, variant) for variant in variants]

    def clear(self) -> None:
        """Note that the collection is empty."""
        self.by_key.clear()


class Index:
    """Versions by name. limit_bytes: an estimate of the memory it takes."""

    def __init__(self, limit_bytes: int) -> None:
        self._entries: BoundedCache[Name, Packed] = BoundedCache(limit_bytes, _cost)
        # Entries that are read often are unpacked once.
        self._unpacked = Memo(_unpack)
        self._variants = KeyVariants()
        self._tombstones: dict[int, list[Tombstone]] = {}

    def __len__(self) -> int:
        """Return the number of entries, hidden ones included."""
        return len(self._entries)

    @property
    def used_bytes(self) -> int:
        """Return the estimated memory."""
        return self._entries.used

    def get(self, name: Name) -> ObjectVersion | None:
        """Return a name's version, None if it is not known."""
        packed = self._entries.get(name)
        if packed is None:
            return None
        if self._tombstones and self._is_hidden(name, _generation(packed)):
            self._remove(name)
            return None
        return self._unpacked(packed, name)

    def put(self, found: ObjectVersion) -> None:
        """Remember a version, unless a newer one is known."""
        name = (found.bucket_id, found.key, found.variant)
        if self._is_hidden(name, found.generation):
            return
        known = self._entries.peek(name)
        if known is not None and _generation(known) > found.generation:
            return
        self._variants.add(name)
        for evicted in self._entries.put(name, _pack(found)):
            self._variants.discard(evicted)

    def forget(self, bucket_id: int, key: str, *, below: int) -> None:
        """Drop every variant of a key that is older than a generation."""
        for name in self._variants.names(bucket_id, key):
            self.forget_variant(name, below=below)

    def forget_variant(self, name: Name, *, below: int) -> None:
        """Drop one variant of a key, if it is older than a generation."""
        packed = self._entries.peek(name)
        if packed is not None and _generation(packed) < below:
            self._remove(name)

    def hide(self, bucket_id: int, prefix: str, generation: int) -> Tombstone:
        """Hide a prefix's entries older than a generation; ``sweep`` then removes them."""
        tombstone = Tombstone(prefix, generation)
        self._tombstones.setdefault(bucket_id, []).append(tombstone)
        return tombstone

    def sweep(self, bucket_id: int, tombstone: Tombstone) -> Iterator[None]:
        """Remove what a tombstone hides, in steps, and the tombstone at the end."""
        # Entries added since then are newer than the tombstone, or were refused.
        names = self._entries.names()
        for start in range(0, len(names), SWEEP_STEP):
            for name in names[start : start + SWEEP_STEP]:
                if name[0] == bucket_id and name[1].startswith(tombstone.prefix):
                    self.forget_variant(name, below=tombstone.generation)
            yield
        self._lower(bucket_id, tombstone)

    def clear(self) -> None:
        self._entries.clear()
        self._variants.clear()
        self._tombstones.clear()

    def _lower(self, bucket_id: int, tombstone: Tombstone) -> None:
        remaining = self._tombstones.get(bucket_id, [])
        if tombstone in remaining:
            remaining.remove(tombstone)
        if not remaining:
            self._tombstones.pop(bucket_id, None)

    def _is_hidden(self, name: Name, generation: int) -> bool:
        return any(
            generation < tombstone.generation and name[1].startswith(tombstone.prefix)
            for tombstone in self._tombstones.get(name[0], ())
        )

    def _remove(self, name: Name) -> None:
        if self._entries.pop(name) is not None:
            self._variants.discard(name)


class Holders:
    """Nodes by SHA-256; nodes are stored as small numbers, and equal sets once."""

    def __init__(self, limit_bytes: int) -> None:
        self._sets: BoundedCache[bytes, tuple[int, ...]] = BoundedCache(
            limit_bytes, lambda _sha256, _nodes: HOLDERS_ENTRY_BYTES
        )
        self._shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._nodes: list[UUID] = []
        self._numbers: dict[UUID, int] = {}
        # Rises with every change: a result that was read before one is not stored after it.
        self.marks = 0

    def __len__(self) -> int:
        return len(self._sets)

    def get(self, sha256: bytes) -> tuple[UUID, ...] | None:
        """Return the nodes, None if they are not known."""
        numbers = self._sets.get(sha256)
        if numbers is None:
            return None
        return tuple(self._nodes[number] for number in numbers)

    def put(self, sha256: bytes, nodes: tuple[UUID, ...]) -> None:
        numbers = tuple(self._number(node) for node in nodes)
        if len(self._shared) > SETS_SHARED:
            self._shared.clear()
        self._sets.put(sha256, self._shared.setdefault(numbers, numbers))

    def forget(self, sha256: bytes) -> None:
        self.marks += 1
        self._sets.pop(sha256)

    def clear(self) -> None:
        self.marks += 1
        self._sets.clear()
        self._shared.clear()

    def _number(self, node: UUID) -> int:
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
        return number


def _cost(name: Name, packed: Packed) -> int:
    return VERSION_ENTRY_BYTES + len(name[1]) + len(name[2]) + len(packed[2]) + len(packed[4])


def _generation(packed: Packed) -> int:
    generation: int = NUMBERS.unpack(packed[0])[0]
    return generation


def _pack(found: ObjectVersion) -> Packed:
    extras: tuple[Any, ...] = (
        found.headers,
        found.metadata,
        found.checksums,
        found.parts,
        found.http,
    )
    numbers = NUMBERS.pack(
        found.generation,
        found.size,
        (found.last_modified - EPOCH) // MICROSECOND,
        (found.cached_at - EPOCH) // MICROSECOND,
        -1 if found.crc32 is None else found.crc32,
    )
    return (
        numbers,
        found.sha256,
        found.etag,
        sys.intern(found.content_type),
        orjson.dumps(extras) if any(extras) else b"",
    )


def _unpack(packed: Packed, name: Name) -> ObjectVersion:
    numbers, sha256, etag, content_type, extras = packed
    generation, size, last_modified, cached_at, crc32 = NUMBERS.unpack(numbers)
    headers, metadata, checksums, parts, http = (
        orjson.loads(extras) if extras else ({}, {}, {}, (), {})
    )
    return ObjectVersion(
        *name,
        generation,
        sha256,
        size,
        etag,
        content_type,
        headers,
        metadata,
        checksums,
        tuple(parts),
        EPOCH + last_modified * MICROSECOND,
        http,
        EPOCH + cached_at * MICROSECOND,
        None if crc32 < 0 else crc32,
    )
