"""Which nodes hold which bytes, in memory: a bounded cache, lean as the index is."""

from typing import Final
from uuid import UUID

from edgecache.brain.bounded_cache import BoundedCache

# Measured: what one entry takes (benchmarks/cache_index.py); the hash is mostly the index's own.
ENTRY_BYTES: Final = 90
SETS_SHARED: Final = 100_000


class Holders:
    """Nodes by SHA-256; nodes are kept as small numbers, and equal sets of them once."""

    def __init__(self, limit_bytes: int) -> None:
        self._sets: BoundedCache[bytes, tuple[int, ...]] = BoundedCache(
            limit_bytes, lambda _sha256, _nodes: ENTRY_BYTES
        )
        self._shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._nodes: list[UUID] = []
        self._numbers: dict[UUID, int] = {}
        # Rises with every change: what was read before one is not kept after it.
        self.marks = 0

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._sets)

    def get(self, sha256: bytes) -> tuple[UUID, ...] | None:
        """Give the nodes, None when it is not known."""
        numbers = self._sets.get(sha256)
        if numbers is None:
            return None
        return tuple(self._nodes[number] for number in numbers)

    def put(self, sha256: bytes, nodes: tuple[UUID, ...]) -> None:
        """Remember the nodes."""
        numbers = tuple(self._number(node) for node in nodes)
        if len(self._shared) > SETS_SHARED:
            self._shared.clear()
        self._sets.put(sha256, self._shared.setdefault(numbers, numbers))

    def forget(self, sha256: bytes) -> None:
        """Drop what is known of some bytes."""
        self.marks += 1
        self._sets.pop(sha256)

    def clear(self) -> None:
        """Forget everything."""
        self.marks += 1
        self._sets.clear()
        self._shared.clear()

    def _number(self, node: UUID) -> int:
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
        return number
