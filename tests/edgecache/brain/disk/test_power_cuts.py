"""Small bodies after a power cut: acknowledged ones are restored from the journal."""

import errno
import os
import shutil

import pytest

from edgecache.brain.core.values import BucketInfo, ObjectVersion
from edgecache.brain.disk.digests import manifest_of
from edgecache.brain.disk.process_folders import STARTING_S
from tests.edgecache.brain.brains import PLAIN, Brain, Rows, buffered, running, until
from tests.edgecache.brain.children import child

pytestmark = pytest.mark.slow

BODIES = [b"first", b"second", b"third"]


@pytest.mark.parametrize("damage", ["gone", "empty", "zeros"])
async def test_files_are_restored_after_a_power_cut(rows: Rows, brain: Brain, damage: str) -> None:
    bucket = await brain.bucket()
    async with child(rows.url, brain.data_directory.root) as doomed:
        for number, data in enumerate(BODIES):
            await doomed.do("put", bucket=bucket.id, key=f"k{number}", data=data.decode())
        await doomed.kill()
    for data in BODIES:
        path = brain.data_directory.origin_path(manifest_of(data).sha256)
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(bytes(len(data)) if damage == "zeros" else b"")

    # The next one that starts; or a running one, a while after the dead one began.
    if damage == "gone":
        make_old(brain)
        brain.data_directory.sync_soon()
        await until(lambda: processes(brain) == [1, 1])
    else:
        async with running(rows.url, brain.data_directory.root):
            assert processes(brain) == [2, 2]

    await until(lambda: not brain.coherence.peers)
    for number, data in enumerate(BODIES):
        assert await brain.get(bucket, f"k{number}") == data


def processes(brain: Brain) -> list[int]:
    """Return of how many processes there are folders."""
    return [
        len(list((brain.data_directory.root / name).iterdir())) for name in ("temp", "journals")
    ]


def make_old(brain: Brain) -> None:
    """Make all processes seem to have begun long ago."""
    for lock in brain.data_directory.root.glob("*/*/lock"):
        os.utime(lock, (0, lock.stat().st_mtime - 2 * STARTING_S))


async def test_a_brain_starts_although_a_file_cannot_be_restored_yet(
    rows: Rows, brain: Brain
) -> None:
    bucket = await brain.bucket()
    async with child(rows.url, brain.data_directory.root) as doomed:
        for number, data in enumerate(BODIES):
            await doomed.do("put", bucket=bucket.id, key=f"k{number}", data=data.decode())
        await doomed.kill()
    bad, gone, _ = (brain.data_directory.origin_path(manifest_of(data).sha256) for data in BODIES)
    for path in (bad, gone):
        path.unlink()
    # Neither read nor replaced.
    (bad / "bad").mkdir(parents=True)

    async with running(rows.url, brain.data_directory.root) as next_one:
        assert await next_one.get(bucket, "k1") == BODIES[1]
        with pytest.raises(Exception, match="not where they should be"):
            await next_one.get(bucket, "k0")
    shutil.rmtree(bad)
    make_old(brain)
    brain.data_directory.sync_soon()

    await until(lambda: processes(brain) == [1, 1])
    await until(lambda: not brain.coherence.peers)
    assert await brain.get(bucket, "k0") == BODIES[0]


async def test_a_brain_that_stops_leaves_no_journal(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    async with running(rows.url, brain.data_directory.root) as other:
        await put_all(other, bucket.id)
        assert list(brain.data_directory.root.glob("journals/*/journal-*"))
        assert processes(brain) == [2, 2]

    assert processes(brain) == [1, 1]
    assert await brain.get(bucket, "k0") == BODIES[0]


async def put_all(brain: Brain, bucket_id: int) -> list[ObjectVersion]:
    """Write all bodies."""
    bucket = await brain.directory.bucket_by_id(bucket_id)
    return [await put(brain, bucket, f"k{number}", data) for number, data in enumerate(BODIES)]


async def put(brain: Brain, bucket: BucketInfo, key: str, data: bytes) -> ObjectVersion:
    """Write a body that is in memory."""
    return await brain.objects.put(bucket, key, buffered(brain, data), PLAIN)


async def test_a_journal_on_a_full_disk_does_not_fail_what_has_room(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_file: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    bucket = await brain.bucket()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        await put_all(brain, bucket.id)
    await put(brain, bucket, "later", b"later")

    assert await brain.get(bucket, "k1") == BODIES[1]
    assert await brain.get(bucket, "later") == b"later"
