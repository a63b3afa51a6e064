"""The memory of a million objects in the brain, and the speed of lookups.

``python -m benchmarks.cache.cache_index [OBJECTS]``; needs no database.
"""

import gc
import hashlib
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from edgecache.brain.core.values import ObjectVersion
from edgecache.brain.directory.index import Holders, Index

OBJECTS: Final = 1_000_000
MIB: Final = 2**20
LOOKS: Final = 200_000
NODES: Final = tuple(UUID(int=number) for number in range(1, 21))


def main(objects: int) -> None:
    """Fill the index and measure lookups and a purge."""
    index, holders = Index(2**40), Holders(2**40)
    gc.collect()
    before = resident()
    started = time.perf_counter()
    for number in range(objects):
        found = made(number)
        index.put(found)
        pair = (NODES[number % 20], NODES[(number * 7 + 3) % 20])
        holders.put(found.sha256, pair)
    filled_s = time.perf_counter() - started
    taken = resident() - before
    print(f"{objects:,} objects: {taken / MIB:.0f} MiB resident, {taken / objects:.0f} bytes each")
    print(f"  the index reckons {index.used_bytes / MIB:.0f} MiB; filled in {filled_s:.1f} s")
    started = time.perf_counter()
    gc.collect()
    print(f"  one full garbage collection: {(time.perf_counter() - started) * 1e3:.0f} ms")
    look_around(index, holders, objects)
    hide(index)


def look_around(index: Index, holders: Holders, objects: int) -> None:
    """Measure lookups of objects and their nodes."""
    names = [name_of(number * 7919 % objects) for number in range(LOOKS)]
    started = time.perf_counter()
    for name in names:
        found = index.get(name)
        if found is None or holders.get(found.sha256) is None:
            raise SystemExit("the index lost an object")
    each = (time.perf_counter() - started) / LOOKS
    print(f"  found with its nodes in {each * 1e6:.2f} us")


def hide(index: Index) -> None:
    """Measure the in-memory part of a purge by prefix."""
    started = time.perf_counter()
    barrier = index.hide(1, "assets/0", 2**62)
    hidden_s = time.perf_counter() - started
    steps = []
    sweep = index.sweep(1, barrier)
    started = time.perf_counter()
    for _ in sweep:
        steps.append(time.perf_counter() - started)
        started = time.perf_counter()
    print(
        f"  a prefix hidden in {hidden_s * 1e6:.0f} us, swept in {sum(steps):.2f} s,"
        f" no step longer than {max(steps) * 1e3:.0f} ms; {len(index):,} left"
    )


def name_of(number: int) -> tuple[int, str, str]:
    """Return the name of an object."""
    return (1, f"assets/{number % 97:02}/images/product-{number:08}.webp", "")


def made(number: int) -> ObjectVersion:
    """Return an object as PostgreSQL would: no two objects share a value."""
    bucket_id, key, variant = name_of(number)
    now = datetime.fromtimestamp(1_700_000_000 + number, UTC)
    data = str(number).encode()
    return ObjectVersion(
        bucket_id,
        key,
        variant,
        number + 1000,
        hashlib.sha256(data).digest(),
        100_000 + number,
        hashlib.md5(data, usedforsecurity=False).hexdigest(),
        "".join(("image/", "webp")),
        {},
        {},
        {},
        (),
        now,
        {},
        now.replace(microsecond=number % 1_000_000),
    )


def resident() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else OBJECTS)
