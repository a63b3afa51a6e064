"""A cache that organizations share: each keeps its part, and gets more only while it is unused."""

from collections.abc import Callable
from typing import NamedTuple

from edgecache.runtime.bounded_cache import IDLE_S, BoundedCache


class Clock:
    """A clock that stands until it is set."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Kept(NamedTuple):
    """A value with its owner."""

    owner: str
    cost: int = 1


Cache = BoundedCache[str, Kept]


def cache_of(limit: int, clock: Callable[[], float] = lambda: 0.0) -> Cache:
    """Return a cache whose values have owners."""
    return BoundedCache(
        limit, lambda _, kept: kept.cost, owner_of=lambda _, kept: kept.owner, clock=clock
    )


def sweep(cache: Cache, owner: str, count: int, *, cost: int = 1) -> None:
    """Put many values that are never used again."""
    for number in range(count):
        cache.put(f"{owner} {number}", Kept(owner, cost))


def holdings(cache: Cache, owner: str, count: int) -> int:
    """Count what is left of a sweep."""
    return sum(f"{owner} {number}" in cache for number in range(count))


def test_one_owner_alone_has_all_of_it_and_loses_what_it_used_least_recently() -> None:
    cache = cache_of(3)
    sweep(cache, "bob", 3)
    assert cache.get("bob 0") == Kept("bob")
    cache.put("another", Kept("bob"))
    assert [key in cache for key in ("bob 0", "bob 1", "bob 2", "another")] == [True, False] + (
        [True] * 2
    )


def test_what_an_owner_has_within_its_part_stays_while_another_sweeps() -> None:
    cache = cache_of(100)
    cache.put("hers", Kept("alice"))
    sweep(cache, "bob", 10_000)
    assert "hers" in cache
    assert holdings(cache, "bob", 10_000) == 99


def test_an_owner_who_comes_late_gets_an_equal_part() -> None:
    cache = cache_of(100)
    sweep(cache, "bob", 1000)
    sweep(cache, "charlie", 1000)
    assert (holdings(cache, "bob", 1000), holdings(cache, "charlie", 1000)) == (50, 50)
    cache.put("hers", Kept("alice"))
    sweep(cache, "bob", 1000)
    assert "hers" in cache


def test_what_the_small_ones_leave_is_shared_by_the_large_ones() -> None:
    cache = cache_of(100)
    for number in range(8):
        cache.put(f"its {number}", Kept(f"small {number}"))
    sweep(cache, "bob", 1000)
    sweep(cache, "charlie", 1000)
    assert (holdings(cache, "bob", 1000), holdings(cache, "charlie", 1000)) == (46, 46)
    assert all(f"its {number}" in cache for number in range(8))


def test_who_has_used_nothing_for_long_keeps_nothing_from_others() -> None:
    clock = Clock()
    cache = cache_of(100, clock)
    sweep(cache, "alice", 50)
    sweep(cache, "bob", 1000)
    assert holdings(cache, "alice", 50) == 50
    clock.now += IDLE_S + 1
    sweep(cache, "bob", 1000)
    assert (holdings(cache, "alice", 50), holdings(cache, "bob", 1000)) == (0, 100)


def test_costs_are_counted_and_what_is_removed_leaves_room() -> None:
    cache = cache_of(100)
    sweep(cache, "bob", 10, cost=30)
    assert holdings(cache, "bob", 10) == 3
    assert cache.pop("bob 9") == Kept("bob", 30)
    assert cache.pop("bob 9") is None
    cache.put("hers", Kept("alice", 40))
    assert holdings(cache, "bob", 10) == 2
    cache.put("hers", Kept("alice", 10))
    assert cache.get("hers") == Kept("alice", 10)
    cache.put("more", Kept("alice", 30))
    assert holdings(cache, "bob", 10) == 2


def test_a_value_without_an_owner_s_room_leaves_no_trace() -> None:
    cache = cache_of(10)
    cache.put("too large", Kept("bob", 11))
    assert "too large" not in cache
    cache.put("hers", Kept("alice", 10))
    assert "hers" in cache
