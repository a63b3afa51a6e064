"""The directory in memory: a bounded cache over PostgreSQL, the least recently used entry leaves.

Entries are tuples of immutable values, so that a million of them neither fill the memory nor slow
the garbage collector, which does not walk such tuples. A purge by prefix does not walk them
either: it raises a barrier, which hides them at once, and they are swept out in small steps.
"""

from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from edgecache.brain.values import Found

Name = tuple[int, str, str]
# generation, sha256, size, etag, content type, extras as JSON, last modified, cached at
Packed = tuple[int, bytes, int, str, str, bytes, datetime, datetime]

# Measured: what one entry takes beyond its texts (benchmarks/cache_index.py).
ENTRY_BYTES: Final = 640
SWEEP_STEP: Final = 5_000


class Barrier(NamedTuple):
    """Entries under the prefix with an older generation are dead."""

    prefix: str
    generation: int


class Index:
    """What keys hold. limit_bytes: an estimate; the process takes about that much."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._used = 0
        self._entries: OrderedDict[Name, Packed] = OrderedDict()
        # Other than the empty variant, by (bucket, key): what a change of the key hits.
        self._variants: dict[tuple[int, str], set[str]] = {}
        self._barriers: dict[int, list[Barrier]] = {}

    def __len__(self) -> int:
        """Count the entries, hidden ones among them."""
        return len(self._entries)

    @property
    def used_bytes(self) -> int:
        """Estimate the memory it takes."""
        return self._used

    def get(self, name: Name) -> Found | None:
        """Give what is known of a name; it becomes the most recently used one."""
        packed = self._entries.get(name)
        if packed is None:
            return None
        if self._barriers and self._is_hidden(name, packed[0]):
            self._remove(name)
            return None
        self._entries.move_to_end(name)
        return _unpack(name, packed)

    def put(self, found: Found) -> None:
        """Remember a version, unless a newer one is known."""
        name = (found.bucket_id, found.key, found.variant)
        if self._is_hidden(name, found.generation):
            return
        known = self._entries.get(name)
        if known is not None:
            if known[0] > found.generation:
                return
            self._remove(name)
        packed = _pack(found)
        self._entries[name] = packed
        self._used += _cost(name, packed)
        if found.variant:
            self._variants.setdefault(name[:2], set()).add(found.variant)
        while self._used > self._limit and self._entries:
            self._remove(next(iter(self._entries)))

    def forget(self, bucket_id: int, key: str, *, below: int) -> None:
        """Drop every variant of a key that is older than a generation."""
        for variant in ("", *self._variants.get((bucket_id, key), ())):
            packed = self._entries.get((bucket_id, key, variant))
            if packed is not None and packed[0] < below:
                self._remove((bucket_id, key, variant))

    def hide(self, bucket_id: int, prefix: str, generation: int) -> Barrier:
        """Hide what a prefix had before a generation, at once; ``sweep`` then takes it out."""
        barrier = Barrier(prefix, generation)
        self._barriers.setdefault(bucket_id, []).append(barrier)
        return barrier

    def sweep(self, bucket_id: int, barrier: Barrier) -> Iterator[None]:
        """Take out what a barrier hides, a step at a time, and the barrier at the end."""
        # What comes in meanwhile is newer than the barrier, or was refused by it.
        names = iter(list(self._entries))
        while step := list(islice(names, SWEEP_STEP)):
            for name in step:
                if name[0] == bucket_id and name[1].startswith(barrier.prefix):
                    packed = self._entries.get(name)
                    if packed is not None and packed[0] < barrier.generation:
                        self._remove(name)
            yield
        self._lower(bucket_id, barrier)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._variants.clear()
        self._barriers.clear()
        self._used = 0

    def _lower(self, bucket_id: int, barrier: Barrier) -> None:
        standing = self._barriers.get(bucket_id, [])
        if barrier in standing:
            standing.remove(barrier)
        if not standing:
            self._barriers.pop(bucket_id, None)

    def _is_hidden(self, name: Name, generation: int) -> bool:
        return any(
            generation < barrier.generation and name[1].startswith(barrier.prefix)
            for barrier in self._barriers.get(name[0], ())
        )

    def _remove(self, name: Name) -> None:
        packed = self._entries.pop(name, None)
        if packed is None:
            return
        self._used -= _cost(name, packed)
        if name[2]:
            others = self._variants.get(name[:2], set())
            others.discard(name[2])
            if not others:
                self._variants.pop(name[:2], None)


def _cost(name: Name, packed: Packed) -> int:
    return ENTRY_BYTES + len(name[1]) + len(name[2]) + len(packed[3]) + len(packed[5])


def _pack(found: Found) -> Packed:
    extras: tuple[Any, ...] = (
        found.headers,
        found.metadata,
        found.checksums,
        found.parts,
        found.http,
    )
    return (
        found.generation,
        found.sha256,
        found.size,
        found.etag,
        found.content_type,
        orjson.dumps(extras) if any(extras) else b"",
        found.last_modified,
        found.cached_at,
    )


def _unpack(name: Name, packed: Packed) -> Found:
    generation, sha256, size, etag, content_type, extras, last_modified, cached_at = packed
    headers, metadata, checksums, parts, http = (
        orjson.loads(extras) if extras else ({}, {}, {}, (), {})
    )
    return Found(
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
        last_modified,
        http,
        cached_at,
    )
