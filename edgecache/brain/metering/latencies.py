"""Latencies in logarithmic buckets: small, mergeable, exact to 3 %.

As HdrHistogram does it: 32 buckets for each doubling. Source: Tene, "HdrHistogram", and the
counts of several processes add up to the counts of all.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

SUB_BITS: Final = 5
SUB_BUCKETS: Final = 1 << SUB_BITS
MAX_LATENCY_US: Final = 3600 * 1_000_000
US_PER_MS: Final = 1000


def bucket_of(us: int) -> int:
    """Return the bucket of a duration in microseconds, 0 to MAX_LATENCY_US, in ascending order."""
    shift = us.bit_length() - SUB_BITS - 1
    if shift <= 0:
        return us
    return (shift << SUB_BITS) + (us >> shift)


def middle_of(bucket: int) -> float:
    """Return the middle of a bucket in microseconds."""
    if bucket < 2 * SUB_BUCKETS:
        return float(bucket)
    shift = (bucket >> SUB_BITS) - 1
    low = (bucket - (shift << SUB_BITS)) << shift
    return low + (1 << shift) / 2


class Latencies:
    """A histogram. ``counts``: how many by bucket."""

    __slots__ = ("counts", "total_us")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.total_us = 0

    @property
    def count(self) -> int:
        """Return how many there are."""
        return sum(self.counts.values())

    def add(self, seconds: float) -> None:
        us = int(seconds * 1_000_000)
        if not 0 <= us <= MAX_LATENCY_US:
            us = 0 if us < 0 else MAX_LATENCY_US
        # The same as ``bucket_of``, without a call for each response.
        shift = us.bit_length() - SUB_BITS - 1
        bucket = us if shift <= 0 else (shift << SUB_BITS) + (us >> shift)
        counts = self.counts
        counts[bucket] = counts.get(bucket, 0) + 1
        self.total_us += us

    def merge(self, other: "Latencies") -> None:
        """Add another histogram's counts."""
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.total_us += other.total_us

    def quantile_ms(self, share: float) -> float:
        """Return the quantile; 0 without durations."""
        wanted = share * self.count
        seen = 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return round(middle_of(bucket) / US_PER_MS, 3)
        return 0.0

    def mean_ms(self) -> float:
        """Return the mean, or 0 without values."""
        count = self.count
        return round(self.total_us / count / US_PER_MS, 3) if count else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return what ``from_json`` reads."""
        return {"counts": {str(k): v for k, v in self.counts.items()}, "total_us": self.total_us}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what ``as_json`` gave; an empty object is an empty histogram."""
        made = cls()
        made.counts = {int(key): int(value) for key, value in values.get("counts", {}).items()}
        made.total_us = int(values.get("total_us", 0))
        return made

    @classmethod
    def merged(cls, parts: Iterable["Latencies"]) -> Self:
        made = cls()
        for part in parts:
            made.merge(part)
        return made
