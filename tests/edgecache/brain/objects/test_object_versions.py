"""Versions in the tables: two brains, garbage collection, usage, the end of a tenant."""

import asyncio

import psycopg

from edgecache.brain.core.values import BucketInfo, DeleteMarker, Deletion, ObjectVersion
from edgecache.brain.directory import tenants
from edgecache.brain.metering import usage_lines
from edgecache.brain.stores import archived_bytes
from tests.edgecache.brain.brains import ALICE, Brain, Rows, read, stored_files
from tests.edgecache.brain.objects.writes import put

LARGE = b"x" * 100_000


async def versioned(brain: Brain, status: str = "Enabled") -> BucketInfo:
    """Return a bucket that keeps versions."""
    bucket = await brain.bucket()
    return await brain.buckets.change(ALICE, bucket.id, {"versioning": status})


async def body_of(brain: Brain, bucket: BucketInfo, version_id: str, key: str = "k") -> bytes:
    """Return the bytes of a version."""
    found = await brain.objects.version(bucket, key, version_id)
    assert isinstance(found, ObjectVersion)
    return await read(brain.objects.open_version(bucket, found))


async def test_a_brain_that_has_not_heard_of_the_versions_keeps_them(
    brain: Brain, other: Brain
) -> None:
    unaware = await brain.bucket()
    await put(brain, unaware, "k", b"null")
    aware = await other.buckets.change(ALICE, unaware.id, {"versioning": "Enabled"})
    first = await put(brain, unaware, "k", b"one")
    copied = await brain.objects.copy((unaware, "k"), unaware, "k")
    markers = await brain.objects.delete(unaware, ["k"])
    assert first.version_id != copied.version_id
    assert markers["k"]
    for version, body in (("", b"null"), (first.version_id, b"one"), (copied.version_id, b"one")):
        assert await body_of(other, aware, version) == body
    # The other way round: a null version after the suspension.
    await other.buckets.change(ALICE, unaware.id, {"versioning": "Suspended"})
    assert (await put(brain, aware, "k", b"two")).version_id == ""
    assert await body_of(other, aware, "") == b"two"


async def test_a_change_of_one_brain_is_seen_by_the_other(brain: Brain, other: Brain) -> None:
    bucket = await versioned(brain)
    first = await put(brain, bucket, "k", b"one")
    second = await put(brain, bucket, "k", b"two")
    assert await other.get(bucket, "k") == b"two"
    await brain.objects.delete_versions(bucket, [Deletion("k", second.version_id)])
    assert await other.get(bucket, "k") == b"one"
    await other.objects.delete(bucket, ["k"])
    marker = await brain.objects.newest_marker(bucket, "k")
    assert isinstance(marker, DeleteMarker)
    assert await brain.directory.find(bucket.id, "k") is None
    await other.objects.delete_versions(bucket, [Deletion("k", marker.version_id)])
    assert await brain.get(bucket, "k") == b"one"
    tagged = await other.objects.tag_version(bucket, "k", "a=b", first.version_id)
    assert isinstance(tagged, ObjectVersion)
    assert (await brain.objects.open(bucket, "k")).version.headers["x-amz-tagging"] == "a=b"


async def test_versions_of_concurrent_writes_are_all_kept(brain: Brain, other: Brain) -> None:
    bucket = await versioned(brain)
    written = await asyncio.gather(
        *(put([brain, other][n % 2], bucket, "k", str(n).encode()) for n in range(12)),
    )
    ids = [found.version_id for found in written]
    assert len({*ids}) == 12
    for number, version_id in enumerate(ids):
        assert await body_of(brain, bucket, version_id) == str(number).encode()
    left = list(ids)
    # Each in turn is the newest, and goes.
    for version_id in sorted(ids, reverse=True):
        current = (await brain.objects.open(bucket, "k")).version
        assert current.version_id == version_id
        await other.objects.delete_versions(bucket, [Deletion("k", version_id)])
        left.remove(version_id)
    assert left == []


async def test_bytes_stay_as_long_as_a_version_has_them(brain: Brain, rows: Rows) -> None:
    bucket = await versioned(brain)
    folder = brain.data_directory.root
    ids = [(await brain.put(bucket, "k", body)).version_id for body in (LARGE, b"small", LARGE)]
    await brain.objects.delete(bucket, ["k"])
    await brain.purges.purge(ALICE, everything=True)
    await brain.garbage_collector.round()
    assert (len(stored_files(folder)), rows.count("smallbody"), rows.count("blob")) == (1, 1, 2)
    assert await body_of(brain, bucket, ids[0]) == LARGE
    assert await body_of(brain, bucket, ids[1]) == b"small"
    await brain.objects.delete_versions(bucket, [Deletion("k", ids[0]), Deletion("k", ids[1])])
    await brain.garbage_collector.round()
    assert await body_of(brain, bucket, ids[2]) == LARGE
    assert (rows.count("smallbody"), rows.count("blob")) == (0, 1)
    await brain.objects.delete_versions(bucket, [Deletion("k", ids[2])])
    await brain.garbage_collector.round()
    assert (len(stored_files(folder)), rows.count("blob")) == (0, 0)


async def test_a_suspended_bucket_lets_the_null_version_go(brain: Brain, rows: Rows) -> None:
    bucket = await versioned(brain, "Suspended")
    for body in (b"one", b"two"):
        await put(brain, bucket, "k", body)
    await brain.objects.delete(bucket, ["k"])
    await brain.objects.delete(bucket, ["k"])
    await brain.garbage_collector.round()
    assert (rows.count("blob"), rows.count("noncurrentversion")) == (0, 1)


async def test_all_versions_are_metered(brain: Brain, rows: Rows) -> None:
    bucket = await versioned(brain)
    for body in (b"1" * 10, b"2" * 200):
        await put(brain, bucket, "k", body)
    await put(brain, bucket, "other", b"3" * 3000)
    await brain.objects.delete(bucket, ["other"])
    await usage_lines.add_storage(brain.database, clock=lambda: 1_800_000_000.0)
    assert rows.value("SELECT storage_byte_hours FROM brain_usageline") == 3210


async def test_the_end_of_an_environment_takes_its_versions(brain: Brain, rows: Rows) -> None:
    bucket = await versioned(brain)
    for body in (LARGE, b"two"):
        await put(brain, bucket, "k", body)
    await brain.objects.delete(bucket, ["k"])
    await tenants.drop(brain.database, brain.coherence, brain.purges, ALICE)
    await brain.garbage_collector.round()
    for table in ("bucket", "storedobject", "noncurrentversion", "blob"):
        assert rows.count(table) == 0


async def test_a_backup_has_the_bytes_of_all_versions(brain: Brain, rows: Rows) -> None:
    bucket = await versioned(brain)
    first = await brain.put(bucket, "k", LARGE)
    small = await put(brain, bucket, "k", b"small")
    await brain.objects.delete(bucket, ["k"])
    await brain.purges.purge(ALICE, everything=True)
    with psycopg.connect(rows.url, autocommit=True) as connection:
        listed = list(archived_bytes.all_bytes(connection))
        assert [(each.sha256, each.size) for each in listed] == [(first.sha256.hex(), len(LARGE))]
        # As after a restore with all bytes, and with those of one version missing.
        assert archived_bytes.forget_cached(connection, []) == 0
        assert await body_of(brain, bucket, small.version_id) == b"small"
        connection.execute("DELETE FROM brain_storedblob")
        assert archived_bytes.forget_cached(connection, [first.sha256.hex()]) == 1
    assert (rows.count("noncurrentversion"), rows.count("blob")) == (2, 1)


async def test_a_restore_without_the_newest_version_has_the_one_before(
    brain: Brain, rows: Rows
) -> None:
    bucket = await versioned(brain)
    first = await put(brain, bucket, "k", b"small")
    newest = await brain.put(bucket, "k", LARGE)
    await put(brain, bucket, "deleted", b"deleted")
    await brain.objects.delete(bucket, ["deleted"])
    await brain.purges.purge(ALICE, everything=True)
    with psycopg.connect(rows.url, autocommit=True) as connection:
        connection.execute("DELETE FROM brain_storedblob")
        archived_bytes.forget_cached(connection, [newest.sha256.hex()])
    assert (await brain.objects.head(bucket, "k")).version_id == first.version_id
    assert await brain.get(bucket, "k") == b"small"
    assert isinstance(await brain.objects.newest_marker(bucket, "deleted"), DeleteMarker)
