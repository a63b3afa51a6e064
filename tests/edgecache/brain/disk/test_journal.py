"""The journal: bodies are restored, synced before they are released, and do not return later."""

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import pytest

from edgecache.brain.disk import segments
from edgecache.brain.disk.digests import manifest_of
from edgecache.brain.disk.journal import Journal
from edgecache.brain.disk.segments import HEADER
from tests.edgecache.brain.held import held_at

BODIES = [b"first", b"second", b"third"]
# Long enough for an operation that nothing blocks.
SHORTLY_S = 0.2
Make = Callable[[str], Journal]
Files = Callable[[bytes], Path]


def body(data: bytes) -> tuple[bytes, bytes]:
    """Return what a journal takes."""
    return manifest_of(data).sha256, data


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Return where a hash has its file."""
    return lambda sha256: tmp_path / "origin" / sha256.hex()[:2] / sha256.hex()


@pytest.fixture
def make(tmp_path: Path, files: Files) -> Make:
    """Return what makes the journal of a process."""
    (tmp_path / "origin").mkdir()

    def made(name: str) -> Journal:
        folder, temp = tmp_path / "journals" / name, tmp_path / "temp" / name
        for each in (folder, temp):
            each.mkdir(parents=True)
        return Journal(folder, temp, files)

    return made


@pytest.mark.parametrize("cut", [1, 3, HEADER.size, HEADER.size + 3])
def test_a_record_that_is_not_whole_ends_the_journal(
    make: Make, files: Files, tmp_path: Path, cut: int
) -> None:
    dead = make("dead")
    assert dead.append([body(data) for data in BODIES])
    for data in BODIES:
        files(manifest_of(data).sha256).unlink()
    (segment,) = (tmp_path / "journals" / "dead").glob("journal-*")
    os.truncate(segment, segment.stat().st_size - cut)

    make("next").adopt(tmp_path / "journals" / "dead")

    restored = [files(manifest_of(data).sha256).exists() for data in BODIES]
    assert restored == [True, True, False]


def test_what_is_deleted_does_not_come_back_when_a_sync_had_failed(
    make: Make,
    files: Files,
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


def restored(files: Files) -> list[bool]:
    """Return which of the bodies have a file."""
    return [files(manifest_of(data).sha256).exists() for data in BODIES]


@contextmanager
def syncs(
    monkeypatch: pytest.MonkeyPatch, failing: Callable[[Path], bool] = lambda _path: False
) -> Iterator[list[Path]]:
    """Yield what is synced in the block; some of it fails."""
    synced: list[Path] = []
    real = os.fsync

    def fsync(file: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{file}"))  # noqa: PTH115 - no real path
        if failing(path):
            raise OSError(errno.EIO, "the disk")
        real(file)
        synced.append(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield synced


def test_files_of_a_dead_process_are_rewritten_because_its_syncs_may_have_failed(
    make: Make, files: Files, tmp_path: Path
) -> None:
    dead, next_one = make("dead"), make("next")
    assert dead.append([body(data) for data in BODIES])
    lost, deleted, _ = (files(manifest_of(data).sha256) for data in BODIES)
    next_one.adopt(tmp_path / "journals" / "dead")
    # What the disk has, and memory had not, when the files were compared.
    lost.write_bytes(b"wrong")
    deleted.unlink()

    next_one.sync()

    assert lost.read_bytes() == BODIES[0]
    assert not deleted.exists()
    assert not list(tmp_path.glob("journals/*/journal-*"))


def test_a_file_that_cannot_be_read_is_replaced(make: Make, files: Files, tmp_path: Path) -> None:
    assert make("dead").append([body(data) for data in BODIES])
    unreadable = files(manifest_of(BODIES[0]).sha256)
    unreadable.unlink()
    unreadable.symlink_to(unreadable)

    make("next").adopt(tmp_path / "journals" / "dead")

    assert unreadable.read_bytes() == BODIES[0]


def test_a_file_that_cannot_be_restored_is_restored_later(
    make: Make, files: Files, tmp_path: Path
) -> None:
    assert make("dead").append([body(data) for data in BODIES])
    paths = [files(manifest_of(data).sha256) for data in BODIES]
    for path in paths:
        path.unlink()
    (paths[0] / "bad").mkdir(parents=True)
    next_one = make("next")

    with pytest.raises(IsADirectoryError):
        next_one.adopt(tmp_path / "journals" / "dead")
    assert [path.is_file() for path in paths] == [False, True, True]
    (paths[0] / "bad").rmdir()
    paths[0].rmdir()
    next_one.adopt(tmp_path / "journals" / "dead")

    assert [path.is_file() for path in paths] == [True, True, True]


def test_the_end_waits_for_a_thread_whose_caller_has_given_up(
    make: Make, files: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    journal = make("one")
    assert journal.append([body(BODIES[0])])
    last = files(manifest_of(BODIES[1]).sha256)
    held = held_at(monkeypatch, "replace", lambda _path, target: Path(target) == last)
    with syncs(monkeypatch) as synced, ThreadPoolExecutor(2) as threads:
        appending = threads.submit(journal.append, [body(BODIES[1])])
        held.wait()
        ending = threads.submit(journal.end)
        wait([ending], timeout=SHORTLY_S)
        held.go_on()
        assert appending.result()
        ending.result()

    assert {files(manifest_of(data).sha256) for data in BODIES[:2]} <= set(synced)
    assert not list(tmp_path.glob("journals/*/journal-*"))
    assert not journal.append([body(BODIES[2])])


def test_the_end_waits_for_an_adoption_and_then_there_is_none(
    make: Make, files: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    journal = make("one")
    for name in ("dead", "later"):
        assert make(name).append([body(data) for data in BODIES])
    held = held_at(monkeypatch, "rename", lambda path, _target: path.parent.name == "dead")
    with syncs(monkeypatch) as synced, ThreadPoolExecutor(2) as threads:
        adopting = threads.submit(journal.adopt, tmp_path / "journals" / "dead")
        held.wait()
        ending = threads.submit(journal.end)
        wait([ending], timeout=SHORTLY_S)
        held.go_on()
        adopting.result()
        ending.result()
    with pytest.raises(OSError, match="ends"):
        journal.adopt(tmp_path / "journals" / "later")

    assert {files(manifest_of(data).sha256) for data in BODIES} <= set(synced)
    (left,) = tmp_path.glob("journals/*/journal-*")
    assert left.parent.name == "later"


def test_a_segment_that_cannot_be_synced_does_not_keep_the_others(
    make: Make, files: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(segments, "SEGMENT_RECORDS", 1)
    dead = make("dead")
    for data in BODIES:
        assert dead.append([body(data)])
    bad = files(manifest_of(BODIES[0]).sha256)
    with (
        syncs(monkeypatch, failing=lambda path: path == bad),
        pytest.raises(OSError, match="the disk"),
    ):
        dead.sync()
    for data in BODIES:
        files(manifest_of(data).sha256).unlink()

    make("next").adopt(tmp_path / "journals" / "dead")

    assert restored(files) == [True, False, False]
