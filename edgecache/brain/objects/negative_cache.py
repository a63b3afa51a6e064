"""The negative cache: origins' 404 responses, kept for two seconds."""

import time
from typing import Final

from edgecache.brain.directory.index import KeyVariants, Name

KEPT_S: Final = 2.0
NAMES_KEPT: Final = 10_000


class NegativeCache:
    """Names for which the origin answered 404. An announced change of a name removes it."""

    def __init__(self) -> None:
        self._until: dict[Name, float] = {}
        self._variants = KeyVariants()

    def add(self, name: Name) -> None:
        if len(self._until) >= NAMES_KEPT:
            self.clear()
        self._variants.add(name)
        self._until[name] = time.monotonic() + KEPT_S

    def contains(self, name: Name) -> bool:
        """True if the name has a 404 that is fresh."""
        until = self._until.get(name)
        if until is None:
            return False
        if until > time.monotonic():
            return True
        self._forget(name)
        return False

    def forget(self, bucket_id: int, key: str, _generation: int) -> None:
        """Remove a key that changed."""
        for name in self._variants.names(bucket_id, key):
            self._forget(name)

    def clear(self, *_announced: object) -> None:
        self._until.clear()
        self._variants.clear()

    def _forget(self, name: Name) -> None:
        self._until.pop(name, None)
        self._variants.discard(name)
