"""What the CDN remembers of URLs: that one does not exist, and which headers its responses vary on.

Missing URLs are remembered for two seconds, in memory only, because clients that request random
URLs would fill the directory.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from edgecache.brain.core.values import Name, ObjectVersion
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.directory.index import KeyVariants
from edgecache.brain.directory.versions import Directory
from edgecache.brain.http_caching import caching_rules
from edgecache.brain.http_caching.cache_keys import Target, query_name
from edgecache.brain.http_caching.caching_rules import StoredResponse

NEGATIVE_KEPT_S: Final = 2.0
NEGATIVE_STATUSES: Final = frozenset({404, 410})
BODY_LIMIT_BYTES: Final = 16_384
MAX_NEGATIVE_RESPONSES: Final = 1_000

MAX_VARYING_URLS: Final = 100_000


@dataclass(frozen=True, slots=True)
class NegativeResponse:
    """A response with its body. until: ``time.monotonic``."""

    version: ObjectVersion
    stored: StoredResponse
    body: bytes
    until: float


class NegativeResponses:
    """One brain's; an announced change of a key removes its responses."""

    def __init__(self, coherence: Coherence) -> None:
        self._coherence = coherence
        self._kept: OrderedDict[Name, NegativeResponse] = OrderedDict()
        self._variants = KeyVariants()
        # Counts a bucket's changes, so that a response from before one is not added after it.
        self._changes: Counter[int] = Counter()
        self._losses = 0
        coherence.subscribe("key", self._on_key)
        coherence.subscribe("prefix", self._on_prefix)
        coherence.on_loss(self._on_loss)

    def find(self, name: Name) -> NegativeResponse | None:
        """Return a response that is fresh."""
        found = self._kept.get(name)
        if found is None or not self._coherence.is_current:
            return None
        if found.until > time.monotonic():
            return found
        self._forget([name])
        return None

    def add(
        self,
        name: Name,
        version: ObjectVersion,
        stored: StoredResponse,
        body: bytes,
        *,
        changes: int,
    ) -> None:
        """Keep a response, unless keys of its bucket changed since ``changes``."""
        if changes != self.changes(name[0]) or not self._coherence.is_current:
            return
        self._variants.add(name)
        self._kept[name] = NegativeResponse(
            version, stored, body, time.monotonic() + NEGATIVE_KEPT_S
        )
        if len(self._kept) > MAX_NEGATIVE_RESPONSES:
            self._forget([next(iter(self._kept))])

    def changes(self, bucket_id: int) -> int:
        """Return how often the bucket's keys have changed, for ``add``."""
        return self._changes[bucket_id] + self._losses

    def _on_key(
        self, bucket_id: int, key: str, _generation: int, filled: str | None = None
    ) -> None:
        if filled is None:
            self._changes[bucket_id] += 1
        self._forget(self._variants.names(bucket_id, key))

    def _on_prefix(self, bucket_id: int, prefix: str, _generation: int) -> None:
        self._changes[bucket_id] += 1
        self._forget(
            name for name in self._kept if name[0] == bucket_id and name[1].startswith(prefix)
        )

    def _on_loss(self) -> None:
        self._losses += 1
        self._kept.clear()
        self._variants.clear()

    def _forget(self, names: Iterable[Name]) -> None:
        for name in list(names):
            self._kept.pop(name, None)
            self._variants.discard(name)


def is_negative(stored: StoredResponse) -> bool:
    """True for a response that is kept although the origin says nothing about that."""
    return (
        stored.status in NEGATIVE_STATUSES
        and not caching_rules.is_useful(stored)
        and caching_rules.allows_negative_caching(stored.headers)
    )


class VaryNames:
    """What this process knows of these headers, by bucket and URL.

    Learned from the origin's responses, and from the directory: another process may have stored
    one, or this one before it was restarted. The oldest are forgotten, and learned again.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._names: OrderedDict[tuple[int, Target], tuple[str, ...]] = OrderedDict()

    def of(self, bucket_id: int, target: Target) -> tuple[str, ...]:
        """Return the names; () for a URL whose responses are not known to vary."""
        return self._names.get((bucket_id, target), ())

    def learn(self, bucket_id: int, target: Target, names: tuple[str, ...]) -> None:
        """Store the names that a response depends on."""
        if not names:
            self._names.pop((bucket_id, target), None)
            return
        self._names[bucket_id, target] = names
        self._names.move_to_end((bucket_id, target))
        if len(self._names) > MAX_VARYING_URLS:
            self._names.popitem(last=False)

    async def recall(self, bucket_id: int, target: Target) -> bool:
        """Learn the names from the directory if none are known; True if there are some.

        Raises DatabaseUnavailable.
        """
        if self.of(bucket_id, target):
            return False
        names = await self._directory.vary_names(bucket_id, target.key, query_name(target.query))
        self.learn(bucket_id, target, names)
        return bool(names)
