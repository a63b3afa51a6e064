"""Hot objects in memory: only correct bytes, within the limit."""

import hashlib

from edgecache.runtime.hot_cache import ENTRY_BYTES, OBJECT_LIMIT_BYTES, SEEN_LIMIT, HotCache

CONTENT = b"hot" * 1000


def sha(content: bytes) -> bytes:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(content).digest()


def offer(hot: HotCache, content: bytes, *, times: int = 2, organization_id: int = 1) -> None:
    """Read bytes this many times."""
    for _ in range(times):
        hot.offer(
            sha(content), bytearray(content), organization_id=organization_id, drops=hot.drops
        )


def test_an_object_read_once_does_not_evict_one_read_often() -> None:
    hot = HotCache(limit_bytes=3000 + ENTRY_BYTES)
    offer(hot, CONTENT)
    offer(hot, b"once" * 500, times=1)

    assert hot.get(sha(CONTENT)) == CONTENT
    assert sha(b"once" * 500) not in hot


def test_the_least_recently_used_object_is_evicted() -> None:
    hot = HotCache(limit_bytes=2000 + 2 * ENTRY_BYTES)
    first, second, third = (bytes([number]) * 1000 for number in range(3))
    offer(hot, first)
    offer(hot, second)
    assert hot.get(sha(first)) == first
    offer(hot, third)

    assert [sha(each) in hot for each in (first, second, third)] == [True, False, True]


def test_a_hot_object_stays_while_another_organization_reads_many() -> None:
    hot = HotCache(limit_bytes=10 * (8 + ENTRY_BYTES))
    mine = b"12345678"
    offer(hot, mine, organization_id=1)
    for number in range(1000):
        offer(hot, number.to_bytes(8), organization_id=2)

    assert hot.get(sha(mine)) == mine
    assert hot.get(sha((999).to_bytes(8))) is not None


def test_an_object_read_twice_comes_in_while_another_organization_reads_many() -> None:
    hot = HotCache()
    mine = b"12345678"
    offer(hot, mine, times=1, organization_id=1)
    for number in range(SEEN_LIMIT + 1):
        offer(hot, number.to_bytes(8), times=1, organization_id=2)
    offer(hot, mine, times=1, organization_id=1)

    assert hot.get(sha(mine)) == mine


def test_many_tiny_objects_do_not_exceed_the_limit() -> None:
    hot = HotCache(limit_bytes=10 * (1 + ENTRY_BYTES))
    tiny = [bytes([number]) for number in range(100)]
    for content in tiny:
        offer(hot, content)

    assert [content for content in tiny if sha(content) in hot] == tiny[-10:]


def test_bytes_that_do_not_match_their_hash_are_not_stored() -> None:
    hot = HotCache()
    for _ in range(3):
        hot.offer(sha(CONTENT), bytearray(b"x" * 3000), organization_id=1, drops=hot.drops)

    assert sha(CONTENT) not in hot


def test_large_objects_are_not_stored() -> None:
    hot = HotCache()
    large = bytes(OBJECT_LIMIT_BYTES + 1)
    offer(hot, large)

    assert sha(large) not in hot


def test_an_object_dropped_during_a_read_is_not_stored() -> None:
    hot = HotCache()
    offer(hot, CONTENT, times=1)
    drops = hot.drops
    hot.drop(sha(CONTENT))
    hot.offer(sha(CONTENT), bytearray(CONTENT), organization_id=1, drops=drops)

    assert sha(CONTENT) not in hot


def test_a_dropped_object_frees_its_memory() -> None:
    hot = HotCache(limit_bytes=3000 + ENTRY_BYTES)
    for number in range(5):
        content = bytes([number]) * 3000
        offer(hot, content)
        assert sha(content) in hot
        hot.drop(sha(content))
        hot.drop(sha(content))


def test_what_is_made_of_objects_has_its_part_of_the_memory() -> None:
    hot = HotCache(10_000)
    mine = bytes(3000)
    offer(hot, mine)
    for number in range(100):
        hot.keep(sha(bytes([number])) + b"br", bytes(1000), organization_id=2)
    assert hot._objects.used <= 10_000
    assert hot.get(sha(mine)) == mine
    assert hot.get(sha(bytes([99])) + b"br") == bytes(1000)
    assert hot.get(sha(bytes([99]))) is None
