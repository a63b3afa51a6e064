"""Which nodes hold which blobs, in memory: a bounded cache."""

from typing import Final
from uuid import UUID

from edgecache.brain.core.caches import BoundedCache

# Measured: bytes of one entry (benchmarks/cache/cache_index.py); the hash is shared with the index.
HOLDERS_ENTRY_BYTES: Final = 90
SETS_SHARED: Final = 100_000


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
