"""Placement: which workers hold an object, by weighted rendezvous hashing with bounded load.

Every brain computes the same result from the same nodes, and a node that comes or goes moves only
its own share. Sources: Thaler & Ravishankar, "Using name-based mappings to increase hit rates"
(1998); Schindelhauer & Schomaker, "Weighted distributed hash tables" (2005), the logarithm;
Mirrokni, Thorup & Zadimoghaddam, "Consistent hashing with bounded loads" (2018), the bound.
"""

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

BOUND: Final = 1.25
# Below this fill no node counts as overloaded: on an empty cluster the average means nothing.
UNBOUNDED_FILL: Final = 0.05
HASH_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that may take an object. operator: the organization, None for the platform."""

    node_id: UUID
    operator: int | None
    region: str
    capacity_bytes: int
    used_bytes: int

    @property
    def fill(self) -> float:
        """Return the used share of its capacity."""
        return self.used_bytes / self.capacity_bytes if self.capacity_bytes > 0 else 1.0


def choose(
    sha256: bytes,
    candidates: Iterable[Candidate],
    copies: int,
    *,
    held_by: Collection[UUID] = (),
) -> list[Candidate]:
    """Return the nodes for further replicas, best first.

    copies: wanted in total. held_by: nodes that have one already; they count, and the others
    differ from them in operator and region if possible.
    """
    known = list(candidates)
    holders = [row for row in known if row.node_id in held_by]
    free = [row for row in within_bound(known) if row.node_id not in held_by]
    ranked = rank(sha256, free)
    chosen: list[Candidate] = []
    while ranked and len(holders) + len(chosen) < copies:
        best = _most_different(ranked, [*holders, *chosen])
        ranked.remove(best)
        chosen.append(best)
    return chosen


def rank(sha256: bytes, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort nodes by their rendezvous score for this object, highest first."""
    return sorted(candidates, key=lambda row: _score(sha256, row), reverse=True)


def within_bound(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the nodes filled at most 1.25 times the average; all if none would be left."""
    capacity = sum(row.capacity_bytes for row in candidates)
    used = sum(row.used_bytes for row in candidates)
    average = used / capacity if capacity else 0.0
    limit = max(average * BOUND, UNBOUNDED_FILL)
    return [row for row in candidates if row.fill <= limit] or list(candidates)


def _score(sha256: bytes, row: Candidate) -> float:
    digest = hashlib.blake2b(sha256, key=row.node_id.bytes, digest_size=HASH_BITS // 8).digest()
    # In (0, 1), without both ends: the logarithm is undefined or zero there.
    share = (int.from_bytes(digest, "big") + 0.5) / 2**HASH_BITS
    return -row.capacity_bytes / math.log(min(share, math.nextafter(1.0, 0.0)))


def _most_different(ranked: Sequence[Candidate], holders: Sequence[Candidate]) -> Candidate:
    """Return the best-ranked of those that share the fewest operators and regions with holders."""
    operators = {row.operator for row in holders}
    regions = {row.region for row in holders}
    return min(ranked, key=lambda row: (row.operator in operators) + (row.region in regions))
