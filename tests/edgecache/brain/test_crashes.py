"""Brains killed at critical moments: no stale byte, no lost purge, no lost write."""

import asyncio
import time
from pathlib import Path

import pytest

from edgecache.brain.core.errors import OriginMissing
from tests.edgecache.brain.brains import Brain, Rows, running, settled, stored_files, until
from tests.edgecache.brain.children import child
from tests.edgecache.brain.http_origin import HttpOrigin
from tests.edgecache.brain.s3_origin import S3Origin, Stored

pytestmark = pytest.mark.slow


async def test_a_kill_between_fetch_and_commit_leaves_no_object(
    brain: Brain, origin: HttpOrigin, rows: Rows
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"bytes"
    async with child(rows.url, brain.data_directory.root) as doomed:
        await doomed.halt(
            "edgecache.brain.directory.commits:hold_blob", "get", bucket=bucket.id, key="k"
        )
        await doomed.kill()

    assert await brain.directory.find(bucket.id, "k") is None
    assert await asyncio.wait_for(brain.get(bucket, "k"), 15) == b"bytes"
    await settled(brain)
    assert (await brain.objects.open(bucket, "k")).is_hit
    # Its leftover file is deleted with those of another day, or when a brain starts alone.
    assert len(list(brain.data_directory.temp.iterdir())) == 1
    await brain.data_directory.stop()
    async with running(rows.url, brain.data_directory.root) as next_one:
        assert not list(next_one.data_directory.temp.iterdir())


async def test_a_kill_between_commit_and_replication_loses_nothing(
    brain: Brain, origin: HttpOrigin, rows: Rows, tmp_path: Path
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"bytes"
    async with child(rows.url, tmp_path / "doomed") as doomed:
        assert await doomed.do("get", bucket=bucket.id, key="k") == "bytes"
        await until(lambda: rows.count("cachedobject"))
        await doomed.kill()

    # The directory has it but no node does: it is fetched from the origin again.
    assert (await brain.objects.open(bucket, "k")).is_hit
    assert await asyncio.wait_for(brain.get(bucket, "k"), 15) == b"bytes"
    await settled(brain)
    assert origin.count("/k") == 2


@pytest.mark.parametrize(
    ("at", "size"),
    [
        ("stores.stored_blobs:write_small", 100),
        ("objects.stored_writes:_write_rows", 100),
        # Small bodies are rows, others are files before that.
        ("stores.folder_store:FolderStore.put", 10_000),
        ("stores.stored_blobs:record", 10_000),
        ("objects.stored_writes:_write_rows", 10_000),
    ],
)
async def test_a_kill_during_a_write_leaves_the_old_object(
    brain: Brain, rows: Rows, at: str, size: int
) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"old" * size)
    async with child(rows.url, brain.data_directory.root) as doomed:
        data = "new" * size
        await doomed.halt(f"edgecache.brain.{at}", "put", bucket=bucket.id, key="k", data=data)
        await doomed.kill()

    await until(lambda: not brain.coherence.peers)
    assert await brain.get(bucket, "k") == b"old" * size
    assert rows.count("blob") == 1
    await brain.put(bucket, "k", b"new" * size)
    assert await brain.get(bucket, "k") == b"new" * size
    await brain.garbage_collector.round()
    (known,) = brain.stores.all()
    await brain.garbage_collector.stores.sweep(known, after_s=-60)
    files = stored_files(brain.data_directory.root)
    assert {file.name for file in files} == {
        name.rpartition("/")[2] for (name,) in rows.all("SELECT name FROM brain_storedblob")
    }
    assert await brain.get(bucket, "k") == b"new" * size


async def test_a_kill_between_the_origin_s_response_and_the_commit_leaves_nothing_stale(
    brain: Brain, rows: Rows
) -> None:
    async with S3Origin() as origin:
        bucket = await brain.origin_bucket("s3", origin.config, origin.secret)
        await brain.put(bucket, "k", b"old")
        async with child(rows.url, brain.data_directory.root) as doomed:
            await doomed.halt(
                "edgecache.brain.objects.origin_writes:OriginWrites._commit",
                "put",
                bucket=bucket.id,
                key="k",
                data="new",
            )
            await doomed.kill()

        assert origin.store["k"].data == b"new"
        await until(lambda: not brain.coherence.peers)
        rows.run("DELETE FROM brain_braininstance WHERE id <> %s", [brain.id])
        await brain.garbage_collector.round()
        assert await brain.get(bucket, "k") == b"new"
        assert rows.count("pendingwrite") == 0


async def test_a_kill_between_the_two_steps_of_a_purge_does_not_lose_it(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    for n in range(5):
        await brain.put(bucket, f"a/{n}", b"x%d" % n)
    await brain.put(bucket, "b", b"x")
    async with child(rows.url, brain.data_directory.root) as doomed:
        await doomed.halt(
            "edgecache.brain.directory.purges:Purges.delete_hidden", "purge", prefix="docs/a/"
        )
        assert rows.count("cachedobject") == 6
        assert await brain.directory.find(bucket.id, "a/1") is None
        await doomed.kill()

    await until(lambda: not brain.coherence.peers)
    rows.run("DELETE FROM brain_braininstance WHERE id <> %s", [brain.id])
    await brain.garbage_collector.round()
    assert rows.count("cachedobject") == 1
    assert not (await brain.objects.open(bucket, "a/1")).is_hit


async def test_a_suspended_brain_returns_nothing_stale_when_it_resumes(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"old")
    async with child(rows.url, brain.data_directory.root) as paused:
        assert await paused.do("get", bucket=bucket.id, key="k") == "old"
        paused.pause()
        started = time.monotonic()
        await brain.put(bucket, "k", b"new")
        waited = time.monotonic() - started
        paused.resume()

        assert await paused.do("get", bucket=bucket.id, key="k") == "new"
    assert 2 < waited < 10


async def test_two_processes_see_each_other_s_writes_immediately(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    async with child(rows.url, brain.data_directory.root) as other:
        for n in range(20):
            await brain.put(bucket, "k", b"%d" % n)
            assert await other.do("get", bucket=bucket.id, key="k") == str(n)
            await other.do("put", bucket=bucket.id, key="k", data=f"other {n}")
            assert await brain.get(bucket, "k") == b"other %d" % n
        await other.do("delete", bucket=bucket.id, key="k")
        with pytest.raises(OriginMissing):
            await brain.objects.open(bucket, "k")
        await brain.put(bucket, "k", b"x")
        assert await other.do("purge", prefix="docs/") == 1
        assert not (await brain.objects.open(bucket, "k")).is_hit


async def test_a_killed_reader_does_not_affect_others(brain: Brain, rows: Rows) -> None:
    async with S3Origin() as origin:
        bucket = await brain.origin_bucket("s3", origin.config, origin.secret)
        origin.store["k"] = Stored(b"x" * 1_000_000)
        for at in (
            "edgecache.brain.objects.directory_writer:DirectoryWriter.commit",
            "edgecache.brain.objects.leases:Leases.release_in",
        ):
            async with child(rows.url, brain.data_directory.root) as doomed:
                await doomed.halt(at, "get", bucket=bucket.id, key="k")
                await doomed.kill()
            assert len(await asyncio.wait_for(brain.get(bucket, "k"), 20)) == 1_000_000
            await brain.objects.delete(bucket, ["k"])
            origin.store["k"] = Stored(b"x" * 1_000_000)
