"""Objects in a managed store: read by every brain, checked, collected when nothing names them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import (
    OriginMissing,
    PreconditionFailed,
    StoreMissing,
    StoreUnavailable,
)
from edgecache.brain.core.values import Conditions, ObjectVersion, Span
from edgecache.brain.objects import upload_rows
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.byte_store import ByteStore
from edgecache.brain.stores.reachable_stores import StoreError
from tests.edgecache.brain.brains import ALICE, CHARLIE, MIB, Brain, Rows, read, running, until
from tests.edgecache.brain.children import child
from tests.edgecache.brain.s3.multipart.support import add_part, begin, parts_of

pytestmark = pytest.mark.slow

DAY_S = 24 * 3600


def store_of(brain: Brain) -> ByteStore:
    """Return the store that a brain writes to."""
    with brain.stores.open_write() as target:
        return target.store


async def names(brain: Brain) -> set[str]:
    """Return the names in the brain's store."""
    with brain.stores.open_write() as target:
        return {row.name async for page in target.store.list(target.tag) for row in page}


def forget_copies(*brains: Brain) -> None:
    """Remove the copies that brains have on their disks."""
    for brain in brains:
        for path in (brain.data_directory.root / "blobs").glob("*/*"):
            path.unlink()


async def test_what_one_brain_writes_another_one_reads(stored: Brain, peer: Brain) -> None:
    bucket = await stored.bucket()
    data = bytes(range(256)) * 8192
    await stored.put(bucket, "k", data)

    assert await peer.get(bucket, "k") == data
    assert await peer.get(bucket, "k", Span(MIB - 3, 7)) == data[MIB - 3 : MIB + 4]
    if store_of(peer).file("") is None:
        # The reader has a copy for the workers now.
        await until(lambda: peer.kept)
        assert list((peer.data_directory.root / "blobs").glob("*/*"))


async def test_workers_get_no_version_that_is_not_current(stored: Brain, peer: Brain) -> None:
    bucket = await stored.bucket()
    bucket = await stored.buckets.change(ALICE, bucket.id, {"versioning": "Enabled"})
    older = await stored.put(bucket, "k", bytes(MIB))
    await stored.put(bucket, "k", b"1" * MIB)

    found = await peer.objects.version(bucket, "k", older.version_id)
    assert isinstance(found, ObjectVersion)
    assert await read(peer.objects.open_version(bucket, found)) == bytes(MIB)
    if store_of(peer).file("") is None:
        await until(lambda: [*(peer.data_directory.root / "blobs").glob("*/*")])
        await until(lambda: not peer.managed._restoring)
    assert peer.kept == []


async def test_names_tell_the_environment_and_nothing_else(stored: Brain) -> None:
    for tenant in (ALICE, CHARLIE):
        bucket = await stored.bucket("docs", tenant)
        await stored.put(bucket, "secret-name", b"the same bytes")
        await stored.put(bucket, "again", b"the same bytes")

    found = sorted(name.split("/") for name in await names(stored))
    # Bytes are shared within an environment, not between environments.
    assert {tuple(row[1:4]) for row in found} == {("1", "11", "objects"), ("2", "21", "objects")}
    assert "secret-name" not in str(found)
    # Bytes are shared within an environment, not between environments.
    await stored.garbage_collector.round()
    assert len(await names(stored)) == 2


async def test_bytes_that_no_object_names_are_deleted(stored: Brain, rows: Rows) -> None:
    mine, theirs = await stored.bucket("docs"), await stored.bucket("docs", CHARLIE)
    for bucket in (mine, theirs):
        await stored.put(bucket, "k", b"shared")
    await stored.put(mine, "other", b"shared")
    await stored.garbage_collector.round()
    assert len(await names(stored)) == 2

    await stored.objects.delete(mine, ["k", "other"])
    await stored.garbage_collector.round()
    (left,) = await names(stored)
    assert left.split("/")[1] == "2"
    forget_copies(stored)
    assert await stored.get(theirs, "k") == b"shared"

    await stored.put(theirs, "k", b"new")
    await stored.garbage_collector.round()
    assert len(await names(stored)) == 1
    assert (rows.count("storedblob"), rows.count("discardedbytes")) == (1, 0)


async def test_a_refused_write_leaves_nothing_in_the_store(stored: Brain) -> None:
    bucket = await stored.bucket()
    await stored.put(bucket, "k", b"first")
    with pytest.raises(PreconditionFailed):
        await stored.put(bucket, "k", b"second", conditions=Conditions(if_none_match="*"))

    for _ in range(100):
        if len(await names(stored)) == 1:
            break
        await asyncio.sleep(0.02)
    assert len(await names(stored)) == 1


async def test_a_copy_shares_the_bytes(stored: Brain) -> None:
    bucket = await stored.bucket()
    await stored.put(bucket, "k", b"bytes")
    await stored.objects.copy((bucket, "k"), bucket, "copy")
    await stored.objects.delete(bucket, ["k"])
    await stored.garbage_collector.round()
    forget_copies(stored)

    assert await stored.get(bucket, "copy") == b"bytes"


async def test_leftovers_of_crashes_are_deleted_after_a_day(stored: Brain) -> None:
    bucket = await stored.bucket()
    await stored.put(bucket, "k", b"kept")
    (kept,) = await names(stored)
    store, (known,) = store_of(stored), stored.stores.all()
    stray = stored_blobs.new_name(known.tag, ALICE, stored_blobs.OBJECTS)
    await store.put(stray, b"x", 1)
    await store.put("somebody-else", b"x", 1)
    collector = stored.garbage_collector.stores

    assert await collector.sweep(known) == 0
    assert await collector.sweep(known, after_s=-60) == 1
    assert await names(stored) == {kept}
    assert [row async for page in store.list("") for row in page if row.name == "somebody-else"]


async def test_a_brain_killed_before_its_commit_leaves_the_old_object(
    stored: Brain, rows: Rows, chosen: StoreSettings
) -> None:
    bucket = await stored.bucket()
    await stored.put(bucket, "k", b"old")
    async with child(rows.url, stored.data_directory.root, stores=[chosen]) as doomed:
        await doomed.halt(
            "edgecache.brain.stores.stored_blobs:record",
            "put",
            bucket=bucket.id,
            key="k",
            # The other process writes shorter ones as rows.
            data="new" * 10_000,
        )
        await doomed.kill()

    await until(lambda: not stored.coherence.peers)
    forget_copies(stored)
    assert await stored.get(bucket, "k") == b"old"
    assert len(await names(stored)) == 2
    (known,) = stored.stores.all()
    assert await stored.garbage_collector.stores.sweep(known, after_s=-60) == 1
    assert await stored.get(bucket, "k") == b"old"


async def test_altered_bytes_are_not_served(
    folder_store: StoreSettings, rows: Rows, tmp_path: Path
) -> None:
    async with running(rows.url, tmp_path / "brain", stores=[folder_store]) as brain:
        bucket = await brain.bucket()
        await brain.put(bucket, "k", b"x" * (2 * MIB))
        (name,) = await names(brain)
        file = Path(folder_store.parts.path) / name
        with file.open("r+b") as handle:
            handle.seek(MIB + 5)
            handle.write(b"y")
        forget_copies(brain)

        opened = await brain.objects.open(bucket, "k")
        with pytest.raises(StoreMissing):
            await read(opened, Span(MIB, 100))
        assert await read(opened, Span(0, 100)) == b"x" * 100
        file.unlink()
        with pytest.raises(StoreMissing):
            await read(opened, Span(0, 100))


async def test_a_store_that_is_away_loses_nothing(
    folder_store: StoreSettings, rows: Rows, tmp_path: Path
) -> None:
    folder = Path(folder_store.parts.path)
    async with running(rows.url, tmp_path / "brain", stores=[folder_store]) as brain:
        bucket = await brain.bucket()
        await brain.put(bucket, "k", b"bytes")
        await asyncio.to_thread(folder.rename, folder.with_name("unmounted"))

        with pytest.raises(StoreUnavailable):
            await brain.put(bucket, "k", b"new")
        await brain.garbage_collector.round()
        with pytest.raises(StoreUnavailable):
            await brain.get(bucket, "k")

        await asyncio.to_thread(folder.with_name("unmounted").rename, folder)
        assert await brain.get(bucket, "k") == b"bytes"
        await brain.put(bucket, "k", b"new")


async def test_a_write_that_was_suspended_for_hours_is_refused(
    stored: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await stored.bucket()
    monkeypatch.setattr(stored_blobs, "clock", _late(stored_blobs.clock))
    with pytest.raises(StoreUnavailable):
        await stored.put(bucket, "k", b"late")
    monkeypatch.undo()
    with pytest.raises(OriginMissing):
        await stored.objects.open(bucket, "k")


def _late(clock: Any) -> Any:
    calls = 0

    def late() -> float:
        nonlocal calls
        calls += 1
        return float(clock()) + (0 if calls == 1 else stored_blobs.FRESH_S + 1)

    return late


async def test_parts_of_uploads_are_in_the_store_too(stored: Brain, peer: Brain) -> None:
    bucket = await stored.bucket()
    upload = await begin(stored, bucket)
    await add_part(stored, bucket, upload, 1, b"a" * 100)
    await add_part(stored, bucket, upload, 1, b"b" * 100)
    await add_part(peer, bucket, upload, 2, b"c" * 50)
    staged = await peer.upload_parts.join(await parts_of(peer, upload))
    assert staged.path.read_bytes() == b"b" * 100 + b"c" * 50
    await peer.data_directory.discard(staged)

    await upload_rows.remove(stored.database, upload)
    await stored.garbage_collector.round()
    assert await names(stored) == set()


async def test_an_altered_part_does_not_become_an_object(
    folder_store: StoreSettings, rows: Rows, tmp_path: Path
) -> None:
    async with running(rows.url, tmp_path / "brain", stores=[folder_store]) as brain:
        bucket = await brain.bucket()
        upload = await begin(brain, bucket)
        await add_part(brain, bucket, upload, 1, b"a" * 100)
        (name,) = await names(brain)
        (Path(folder_store.parts.path) / name).write_bytes(b"b" * 100)

        parts = await parts_of(brain, upload)
        with pytest.raises(StoreMissing):
            await brain.upload_parts.join(parts)


async def test_a_brain_without_the_store_that_holds_the_objects_does_not_start(
    rows: Rows, tmp_path: Path, folder_store: StoreSettings
) -> None:
    async with running(rows.url, tmp_path / "brain") as brain:
        await brain.put(await brain.bucket(), "k", b"a file of the data directory")
    with pytest.raises(StoreError, match="movestore"):
        async with running(rows.url, tmp_path / "brain", stores=[folder_store]):
            raise AssertionError("it started")
