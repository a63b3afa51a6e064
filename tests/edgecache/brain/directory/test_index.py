"""The in-memory index: bounded, exact about generations, with prefix tombstones."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgecache.brain.core.values import ObjectVersion
from edgecache.brain.directory.index import Holders, Index
from edgecache.runtime.bounded_cache import BoundedCache

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
FOUND = ObjectVersion(
    7, "a/k", "", 100, b"x" * 32, 5, "etag", "text/plain", {}, {}, {}, (), NOW, {}, NOW
)


def of(key: str, generation: int = 100, *, variant: str = "", bucket: int = 7) -> ObjectVersion:
    """Return a version."""
    return replace(FOUND, bucket_id=bucket, key=key, variant=variant, generation=generation)


def name(found: ObjectVersion) -> tuple[int, str, str]:
    """Return its name."""
    return (found.bucket_id, found.key, found.variant)


@pytest.mark.parametrize(
    "found",
    [
        FOUND,
        replace(
            FOUND,
            headers={"cache-control": "no-cache"},
            metadata={"nämé": "wärt"},
            checksums={"crc32": "AAAA"},
            parts=(5, 3),
            http={"status": 200, "raw": [["a", "b"]]},
        ),
        replace(FOUND, variant="v", size=2**40, last_modified=datetime(1970, 1, 1, tzinfo=UTC)),
        replace(FOUND, last_modified=datetime(1960, 1, 1, tzinfo=UTC)),
    ],
)
def test_an_entry_is_returned(found: ObjectVersion) -> None:
    index = Index(10_000)
    index.put(found)

    assert index.get(name(found)) == found


def test_an_older_version_does_not_replace_a_newer_one() -> None:
    index = Index(10_000)
    index.put(of("k", 5))
    index.put(of("k", 4))

    assert index.get((7, "k", "")) == of("k", 5)
    index.put(of("k", 6))
    assert index.get((7, "k", "")) == of("k", 6)


def test_dropping_a_key_drops_only_its_variants() -> None:
    index = Index(100_000)
    for variant in ("", "de", "en"):
        index.put(of("k", 5, variant=variant))
    index.put(of("k2", 5))
    index.put(of("k", 5, bucket=8))
    index.put(of("k", 9, variant="new"))

    index.forget(7, "k", below=9)

    assert [index.get((7, "k", variant)) for variant in ("", "de", "en")] == [None] * 3
    assert index.get((7, "k", "new")) is not None
    assert index.get((7, "k2", "")) is not None
    assert index.get((8, "k", "")) is not None


def test_a_hidden_prefix_is_hidden_immediately_and_then_swept() -> None:
    index = Index(100_000)
    for key in ("a/1", "a/2", "b"):
        index.put(of(key, 5))
    index.put(of("a/1", 5, bucket=8))

    barrier = index.hide(7, "a/", 10)

    assert index.get((7, "a/1", "")) is None
    index.put(of("a/2", 9))
    index.put(of("a/3", 10))
    assert index.get((7, "a/2", "")) is None
    assert index.get((7, "a/3", "")) is not None
    assert index.get((7, "b", "")) is not None
    assert index.get((8, "a/1", "")) is not None
    for _ in index.sweep(7, barrier):
        pass
    assert len(index) == 3
    # After the sweep: entries put now were read after the purge.
    index.put(of("a/2", 9))
    assert index.get((7, "a/2", "")) is not None


def test_two_tombstones_are_independent() -> None:
    index = Index(100_000)
    first, second = index.hide(7, "a", 10), index.hide(7, "a", 20)
    for _ in index.sweep(7, first):
        pass
    index.put(of("a", 15))

    assert index.get((7, "a", "")) is None
    for _ in index.sweep(7, second):
        pass
    index.put(of("a", 15))
    assert index.get((7, "a", "")) is not None


def test_the_index_keeps_its_limit_and_its_used_entries() -> None:
    index = Index(100_000)
    index.put(of("wanted"))
    for number in range(2000):
        index.put(of(f"k{number:04}", variant="v" if number % 2 else ""))
        assert index.get((7, "wanted", "")) is not None

    assert index.used_bytes <= 100_000
    assert 50 < len(index) < 250
    assert index._variants.by_key.keys() == {name[:2] for name in index._entries.names() if name[2]}


def test_clearing_removes_everything() -> None:
    index = Index(100_000)
    index.put(of("k", variant="v"))
    index.hide(7, "", 1)
    index.clear()

    assert (len(index), index.used_bytes, index._variants.by_key, index._tombstones) == (
        0,
        0,
        {},
        {},
    )


Deeds = st.lists(
    st.tuples(st.sampled_from(["put", "get", "pop"]), st.integers(0, 30)), max_size=300
)


@given(Deeds)
def test_a_bounded_cache_matches_a_dictionary_with_evictions(
    actions: list[tuple[str, int]],
) -> None:
    clock: BoundedCache[int, str] = BoundedCache(10, lambda _key, _value: 1)
    model: dict[int, str] = {}
    for number, (action, key) in enumerate(actions):
        if action == "put":
            model[key] = f"{key}:{number}"
            for gone in clock.put(key, model[key]):
                del model[gone]
        elif action == "get":
            assert clock.get(key) == model.get(key)
        else:
            assert clock.pop(key) == model.pop(key, None)
        assert len(clock) == clock.used == len(model) <= 10
        assert sorted(clock.names()) == sorted(model)


def test_removed_names_do_not_accumulate() -> None:
    clock: BoundedCache[int, str] = BoundedCache(10, lambda _key, _value: 1)
    for number in range(50_000):
        clock.put(number % 3, "x")

    assert sum(len(owner.queue) for owner in clock._owners.values()) <= 10_010


def test_holders_are_cached_within_a_limit() -> None:
    holders = Holders(900)
    one, two = UUID(int=1), UUID(int=2)
    holders.put(b"a", (one, two))
    holders.put(b"b", ())

    assert holders.get(b"a") == (one, two)
    assert holders.get(b"b") == ()
    assert holders.get(b"c") is None
    marks = holders.marks
    holders.forget(b"a")
    assert holders.get(b"a") is None
    assert holders.marks > marks
    for number in range(100):
        holders.put(b"%d" % number, (one,))
    assert len(holders) <= 10


def test_times_before_and_after_the_epoch_are_exact() -> None:
    index = Index(10_000)
    for moment in (NOW, NOW - timedelta(days=365 * 80), NOW + timedelta(microseconds=1)):
        index.put(replace(FOUND, cached_at=moment))
        found = index.get(name(FOUND))
        assert found is not None
        assert found.cached_at == moment
