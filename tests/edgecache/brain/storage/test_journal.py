"""Small bodies after a power cut: what was acknowledged is mended from the journal."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from edgecache.brain.storage import journal as journals
from edgecache.brain.storage.digests import manifest_of
from edgecache.brain.storage.journal import HEADER, Journal
from edgecache.brain.storage.process_folders import STARTING_S
from edgecache.brain.values import BucketInfo, ObjectVersion
from tests.edgecache.brain.brains import PLAIN, Brain, Rows, buffered, running, until
from tests.edgecache.brain.children import child

BODIES = [b"first", b"second", b"third"]


def body(data: bytes) -> tuple[bytes, bytes]:
    """Return what a journal takes."""
    return manifest_of(data).sha256, data


@pytest.fixture
def files(tmp_path: Path) -> Callable[[bytes], Path]:
    """Return where a hash has its file."""
    return lambda sha256: tmp_path / "origin" / sha256.hex()[:2] / sha256.hex()


@pytest.fixture
def make(tmp_path: Path, files: Callable[[bytes], Path]) -> Callable[[str], Journal]:
    """Return what makes the journal of a process."""
    (tmp_path / "origin").mkdir()

    def made(name: str) -> Journal:
        folder = tmp_path / "temp" / name
        folder.mkdir(parents=True)
        return Journal(folder, files)

    return made


@pytest.mark.parametrize("damage", ["gone", "empty", "zeros"])
async def test_what_a_power_cut_leaves_of_files_is_mended(
    rows: Rows, brain: Brain, damage: str
) -> None:
    bucket = await brain.bucket()
    async with child(rows.url, brain.staging.root) as doomed:
        for number, data in enumerate(BODIES):
            await doomed.do("put", bucket=bucket.id, key=f"k{number}", data=data.decode())
        await doomed.kill()
    for data in BODIES:
        path = brain.staging.origin_path(manifest_of(data).sha256)
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(bytes(len(data)) if damage == "zeros" else b"")

    # The next one that starts; or a running one, a while after the dead one began.
    if damage == "gone":
        for lock in brain.staging.temp.parent.glob("*/lock"):
            os.utime(lock, (0, lock.stat().st_mtime - 2 * STARTING_S))
        brain.staging.sync_soon()
        await until(lambda: len(list(brain.staging.temp.parent.iterdir())) == 1)
    else:
        async with running(rows.url, brain.staging.root):
            assert len(list(brain.staging.temp.parent.iterdir())) == 2

    await until(lambda: not brain.coherence.peers)
    for number, data in enumerate(BODIES):
        assert await brain.get(bucket, f"k{number}") == data


async def test_a_brain_that_stops_leaves_no_journal(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    async with running(rows.url, brain.staging.root) as other:
        await put_all(other, bucket.id)
        assert list(other.staging.temp.glob("journal-*"))
        folder = other.staging.temp

    assert not folder.exists()
    assert await brain.get(bucket, "k0") == BODIES[0]


async def put_all(brain: Brain, bucket_id: int) -> list[ObjectVersion]:
    """Write all bodies."""
    bucket = await brain.directory.bucket_by_id(bucket_id)
    return [await put(brain, bucket, f"k{number}", data) for number, data in enumerate(BODIES)]


async def put(brain: Brain, bucket: BucketInfo, key: str, data: bytes) -> ObjectVersion:
    """Write a body that is in memory."""
    return await brain.objects.put(bucket, key, buffered(brain, data), PLAIN)


def test_an_earlier_turn_s_bodies_are_not_brought_back(
    make: Callable[[str], Journal], files: Callable[[bytes], Path], tmp_path: Path
) -> None:
    dead, next_one = make("dead"), make("next")
    assert dead.append([body(data) for data in BODIES])
    dead.sync()
    for data in BODIES:
        files(manifest_of(data).sha256).unlink()
    # In the same file, before what is left of the others.
    assert dead.append([body(b"x")])
    files(manifest_of(b"x").sha256).unlink()

    next_one.adopt(tmp_path / "temp" / "dead")

    assert files(manifest_of(b"x").sha256).read_bytes() == b"x"
    assert not any(files(manifest_of(data).sha256).exists() for data in BODIES)
    next_one.end()
    assert not list(tmp_path.glob("temp/*/journal-*"))


@pytest.mark.parametrize("cut", [1, 3, HEADER.size, HEADER.size + 3])
def test_a_record_that_is_not_whole_ends_the_journal(
    make: Callable[[str], Journal], files: Callable[[bytes], Path], tmp_path: Path, cut: int
) -> None:
    dead = make("dead")
    assert dead.append([body(data) for data in BODIES])
    for data in BODIES:
        files(manifest_of(data).sha256).unlink()
    (segment,) = (tmp_path / "temp" / "dead").glob("journal-*")
    os.truncate(segment, segment.stat().st_size - cut)

    make("next").adopt(tmp_path / "temp" / "dead")

    restored = [files(manifest_of(data).sha256).exists() for data in BODIES]
    assert restored == [True, True, False]


def test_what_is_deleted_does_not_come_back_when_a_sync_had_failed(
    make: Callable[[str], Journal],
    files: Callable[[bytes], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = make("one")
    assert journal.append([body(data) for data in BODIES])
    lost, deleted, _ = (files(manifest_of(data).sha256) for data in BODIES)

    def fail(_file: int) -> None:
        raise OSError(errno.EIO, "the disk")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="the disk"):
            journal.sync()
    lost.write_bytes(b"wrong")
    deleted.unlink()

    journal.sync()

    assert lost.read_bytes() == BODIES[0]
    assert not deleted.exists()


async def test_without_room_in_the_journal_bodies_get_files_of_their_own(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SEGMENTS", 0)
    bucket = await brain.bucket()

    await put_all(brain, bucket.id)

    assert [path.name for path in brain.staging.temp.iterdir()] == ["lock"]
    assert await brain.get(bucket, "k2") == BODIES[2]


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
