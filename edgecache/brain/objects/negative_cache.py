"""What an origin does not have: remembered for two seconds, in memory only.

Otherwise each request for a missing name would be a request to its origin, and clients that request
random names would fill the directory.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from edgecache.brain.core.values import Name, ObjectVersion
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.directory.index import KeyVariants
from edgecache.brain.http_caching.caching_rules import StoredResponse
from edgecache.runtime.bounded_cache import BoundedCache

KEPT_S: Final = 2.0
LIMIT_BYTES: Final = 16 * 2**20
ENTRY_BYTES: Final = 1024


def _fresh() -> float:
    return time.monotonic() + KEPT_S


@dataclass(frozen=True, slots=True)
class NegativeAnswer:
    """An origin's answer. until: ``time.monotonic``.

    version, stored, body: of an HTTP origin's response; None where the object was asked for.
    """

    version: ObjectVersion | None = None
    stored: StoredResponse | None = None
    body: bytes = b""
    until: float = field(default_factory=_fresh)


class NegativeCache:
    """One brain's; an announced change of a key removes its answers. Buckets have equal parts."""

    def __init__(self, coherence: Coherence) -> None:
        self._coherence = coherence
        self._kept: BoundedCache[Name, NegativeAnswer] = BoundedCache(
            LIMIT_BYTES, _cost, owner_of=lambda name, _: name[0]
        )
        self._variants = KeyVariants()
        # Counts a bucket's changes, so that an answer from before one is not added after it.
        self._changes: Counter[int] = Counter()
        self._losses = 0
        coherence.subscribe("key", self._on_key)
        coherence.subscribe("prefix", self._on_prefix)
        coherence.subscribe("fetches", lambda bucket_id: self._on_prefix(bucket_id, "", 0))
        coherence.on_loss(self._on_loss)

    def find(self, name: Name) -> NegativeAnswer | None:
        """Return an answer that is fresh."""
        found = self._kept.get(name)
        if found is None or not self._coherence.is_current:
            return None
        if found.until > time.monotonic():
            return found
        self._forget(name)
        return None

    def add(self, name: Name, answer: NegativeAnswer, *, changes: int) -> None:
        """Keep an answer, unless keys of its bucket changed since ``changes``."""
        if changes != self.changes(name[0]) or not self._coherence.is_current:
            return
        self._variants.add(name)
        for evicted in self._kept.put(name, answer):
            self._variants.discard(evicted)

    def changes(self, bucket_id: int) -> int:
        """Return how often the bucket's keys have changed, for ``add``."""
        return self._changes[bucket_id] + self._losses

    def _on_key(
        self, bucket_id: int, key: str, _generation: int, filled: str | None = None
    ) -> None:
        if filled is None:
            self._changes[bucket_id] += 1
        for name in self._variants.names(bucket_id, key):
            self._forget(name)

    def _on_prefix(self, bucket_id: int, _prefix: str, _generation: int) -> None:
        self._changes[bucket_id] += 1
        self._clear()

    def _on_loss(self) -> None:
        self._losses += 1
        self._clear()

    def _forget(self, name: Name) -> None:
        self._kept.pop(name)
        self._variants.discard(name)

    def _clear(self) -> None:
        self._kept.clear()
        self._variants.clear()


def _cost(name: Name, answer: NegativeAnswer) -> int:
    return ENTRY_BYTES + len(name[1]) + len(name[2]) + len(answer.body)
