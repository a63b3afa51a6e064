"""Hits and bytes by key and hour."""

from collections import Counter
from typing import Final

HOUR_S: Final = 3600
# A read earns in its hour and the five after it. An honest worker sends a receipt within a minute,
# or as soon as its brain answers again; one that waits could choose the hour that it counts in.
HOURS_KEPT: Final = 6
MAX_KEYS: Final = 100_000
# Of one owner, who could keep the others from being counted.
MAX_KEYS_OF_OWNER: Final = MAX_KEYS // 2

Key = tuple[int | str, ...]


class HourlyCounts:
    """The counts of the hours that are kept, of a limited number of keys."""

    def __init__(self) -> None:
        # Hits and bytes; a key begins with its owner.
        self._counts: dict[int, dict[Key, list[int]]] = {}
        self._keys = 0
        self._keys_of: Counter[int | str] = Counter()

    def add(self, key: Key, size: int, *, hour: int, now_hour: int) -> tuple[int, int] | None:
        """Count one hit of this size; return its hour's hits and bytes for its key.

        key: begins with its owner. hour: of the read, less than ``HOURS_KEPT`` before now_hour.
        None: there is no room for another key, and nothing is counted.
        """
        self._forget(before=now_hour - HOURS_KEPT + 1)
        counts = self._counts.setdefault(hour, {})
        count = counts.get(key)
        if count is None:
            if not self._has_room(key[0]):
                return None
            count = counts[key] = [0, 0]
            self._keys += 1
            self._keys_of[key[0]] += 1
        count[0] += 1
        count[1] += size
        return count[0], count[1]

    def _has_room(self, owner: int | str) -> bool:
        return self._keys < MAX_KEYS and self._keys_of[owner] < MAX_KEYS_OF_OWNER

    def _forget(self, *, before: int) -> None:
        for hour in [each for each in self._counts if each < before]:
            gone = self._counts.pop(hour)
            self._keys -= len(gone)
            self._keys_of -= Counter(key[0] for key in gone)
