"""What each URL's answers vary on, learned from the origin; forgotten, it is learned again."""

from collections import OrderedDict
from typing import Final

REMEMBERED: Final = 100_000


class Vary:
    """Header names by bucket, key and query: what an answer's Vary said last."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._names: OrderedDict[tuple[int, str, str], tuple[str, ...]] = OrderedDict()
        self._limit = limit

    def of(self, bucket_id: int, key: str, query: str) -> tuple[str, ...]:
        """Give the names, () for a URL whose answers do not vary, as far as is known."""
        return self._names.get((bucket_id, key, query), ())

    def learn(self, bucket_id: int, key: str, query: str, names: tuple[str, ...]) -> None:
        """Note what an answer said."""
        name = (bucket_id, key, query)
        if not names:
            self._names.pop(name, None)
            return
        self._names[name] = names
        self._names.move_to_end(name)
        if len(self._names) > self._limit:
            self._names.popitem(last=False)
