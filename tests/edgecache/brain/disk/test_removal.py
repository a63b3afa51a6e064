"""A file that was written after the locks were lost is not removed by their former holder."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.core.values import BucketInfo, StagedFile
from edgecache.brain.db.database import DatabaseTransaction
from edgecache.brain.disk import removal
from edgecache.brain.disk.digests import manifest_of
from edgecache.brain.disk.durable_bytes import DurableBytes
from tests.edgecache.brain.brains import PLAIN, Brain, Rows, buffered, until
from tests.edgecache.brain.held import held_at

DATA = b"written again"
SHA256 = manifest_of(DATA).sha256
Removing = Callable[[Brain, Rows, BucketInfo], Coroutine[Any, Any, None]]


async def collect(brain: Brain, _rows: Rows, bucket: BucketInfo) -> None:
    """Collect what was deleted."""
    await put(brain, bucket)
    await brain.objects.delete(bucket, ["k"])
    await brain.garbage_collector.round()


async def sweep(brain: Brain, _rows: Rows, _bucket: BucketInfo) -> None:
    """Remove a file without a row."""
    path = brain.data_directory.origin_path(SHA256)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(DATA)
    os.utime(path, (0, 0))
    await brain.sweep()


async def moved(brain: Brain, rows: Rows, bucket: BucketInfo) -> None:
    """Remove the file of what a store has."""
    await put(brain, bucket)
    tenant = bucket.tenant
    rows.run("INSERT INTO brain_store (name, tag, is_active) VALUES ('s3://b', 't', false)")
    rows.run(
        "INSERT INTO brain_storedblob (organization_id, environment_pk, blob_id, store_id, name)"
        " SELECT %s, %s, %s, id, 'n' FROM brain_store WHERE name = 's3://b'",
        [tenant.organization_id, tenant.environment_pk, SHA256],
    )
    await brain.garbage_collector.stores.moved([SHA256], after_s=-1)


async def put(brain: Brain, bucket: BucketInfo) -> None:
    """Write the object."""
    await brain.objects.put(bucket, "k", buffered(brain, DATA), PLAIN)


@pytest.mark.parametrize("remove", [collect, sweep, moved])
async def test_a_file_written_after_the_locks_were_lost_stays(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch, remove: Removing
) -> None:
    bucket = await brain.bucket()
    path = brain.data_directory.origin_path(SHA256)
    with monkeypatch.context() as patch:
        held = held_at(patch, "rename", lambda found, _aside: found == path)
        removing = asyncio.create_task(remove(brain, rows, bucket))
        await held.came()
        rows.cut("zonal-brain")
        await put(brain, bucket)
        held.go_on()
        await asyncio.gather(removing, return_exceptions=True)
    brain.data_directory.sync_soon()

    await until(lambda: not brain.data_directory.journal.needs_sync_now)
    assert path.read_bytes() == DATA
    assert await brain.get(bucket, "k") == DATA
    assert not [path for path in brain.data_directory.temp.iterdir() if len(path.name) == 32]


async def test_nothing_is_removed_if_the_locks_were_lost_before_the_files_were_looked_at(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    await put(brain, bucket)
    path = brain.data_directory.origin_path(SHA256)

    async def remove() -> None:
        async with brain.database.transaction() as connection:
            rows.cut("zonal-brain")
            await removal.remove_files(brain.data_directory, connection, [path])

    with pytest.raises(DatabaseUnavailable):
        await remove()

    assert await brain.get(bucket, "k") == DATA


async def test_a_file_that_is_placed_again_stays(brain: Brain) -> None:
    store = DurableBytes(brain.data_directory)
    (staged,) = await store.stage([buffered(brain, DATA)])
    assert isinstance(staged, StagedFile)
    assert await store.place([staged]) == [None]
    placed = store.as_placed_file(staged.manifest)

    class Locks:
        """Locks that are lost to the write that places the file again."""

        async def run(self, _sql: str) -> None:
            assert await store.place([placed]) == [None]

    await removal.remove_files(
        brain.data_directory, cast("DatabaseTransaction", Locks()), [placed.path]
    )

    assert placed.path.read_bytes() == DATA


async def test_removal_ends_with_the_locks(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "STEP", 2)
    bucket = await brain.bucket()
    paths = []
    for number in range(6):
        data = b"%d" % number
        found = await brain.objects.put(bucket, f"k{number}", buffered(brain, data), PLAIN)
        paths.append(brain.data_directory.origin_path(found.sha256))

    held = held_at(monkeypatch, "rename", lambda found, _aside: found == paths[2])

    async def remove() -> None:
        async with brain.database.transaction(timeout_s=60) as connection:
            await removal.remove_files(brain.data_directory, connection, paths)

    removing = asyncio.create_task(remove())
    await held.came()
    rows.cut("zonal-brain")
    held.go_on()
    with pytest.raises(DatabaseUnavailable):
        await removing

    assert [path.exists() for path in paths] == [False] * 4 + [True] * 2
