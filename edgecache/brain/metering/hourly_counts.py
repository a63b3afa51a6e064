"""Hits and bytes by key and hour, counted by all processes of a brain together."""

import hashlib
import mmap
import secrets
from typing import Final

HOUR_S: Final = 3600
# A read earns in its hour and the five after it. An honest worker sends a receipt within a minute,
# or as soon as its brain answers again; one that waits could choose the hour that it counts in.
HOURS_KEPT: Final = 6
# And the next hour, which a worker's clock may have reached: it replaces none of those.
SLOTS: Final = HOURS_KEPT + 1
ROWS: Final = 4
COLUMNS: Final = 2**16
# An hour has its number, hits and bytes.
CELLS: Final = ROWS * COLUMNS
NUMBERS: Final = 1 + 2 * CELLS
NONE_YET: Final = memoryview(bytes(16 * CELLS)).cast("Q")


class HourlyCounts:
    """4 MiB for each of seven hours, for any number of keys. Created before processes are forked.

    A count-min sketch: a little too high, and too low only if two processes update one cell in the
    same instant, which does not justify a lock. Its hash has a secret key, so that an operator
    cannot make others' keys collide. Source: Cormode & Muthukrishnan, "An improved data stream
    summary" (2005).
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._numbers = memoryview(mmap.mmap(-1, 8 * SLOTS * NUMBERS)).cast("Q")

    def add(self, key: bytes, size: int, *, hour: int) -> tuple[int, int]:
        """Count one hit of this size; return its hour's hits and bytes for its key.

        hour: of the read, at most ``HOURS_KEPT`` ago.
        """
        numbers = self._numbers
        start = hour % SLOTS * NUMBERS
        if numbers[start] != hour:
            numbers[start + 1 : start + NUMBERS] = NONE_YET
            numbers[start] = hour
        digest = hashlib.blake2b(key, key=self._secret, digest_size=2 * ROWS).digest()
        hits = sizes = 2**63
        for row in range(ROWS):
            cell = start + 1 + row * COLUMNS + digest[2 * row] * 256 + digest[2 * row + 1]
            numbers[cell] += 1
            numbers[cell + CELLS] += size
            hits, sizes = min(hits, numbers[cell]), min(sizes, numbers[cell + CELLS])
        return hits, sizes
