"""The headers that each URL's responses vary on."""

from collections import OrderedDict
from typing import Final

from edgecache.brain.directory.versions import Directory
from edgecache.brain.http_caching.cache_keys import Target, query_name

MAX_NAMES: Final = 100_000


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
        if len(self._names) > MAX_NAMES:
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
