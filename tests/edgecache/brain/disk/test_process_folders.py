"""Folders of processes: a dead one's is ended once, a living one's never."""

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.disk.process_folders import LOCK, ProcessFolders, end_dead, make_locked


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """Return this process's folder."""
    lock = make_locked(tmp_path / "own")
    yield tmp_path / "own"
    os.close(lock)


def dead(own: Path, name: str) -> Path:
    """Return the folder of a process that has ended."""
    os.close(make_locked(own.with_name(name)))
    return own.with_name(name)


def test_only_the_folders_of_dead_processes_are_ended(own: Path) -> None:
    gone, unfinished = dead(own, "gone"), own.with_name("unfinished")
    unfinished.mkdir()
    living = make_locked(own.with_name("living"))
    ended: list[Path] = []

    end_dead(own, ended.append)

    assert set(ended) == {gone, unfinished}
    assert sorted(path.name for path in own.parent.iterdir()) == ["living", "own"]
    os.close(living)


def test_two_processes_that_start_together_end_the_folders_of_dead_ones(own: Path) -> None:
    dead(own, "a")
    dead(own, "b")
    other = make_locked(own.with_name("other"))
    ended: list[Path] = []

    def end(folder: Path) -> None:
        ended.append(folder)
        # The other one is just as far.
        end_dead(own.with_name("other"), ended.append)

    end_dead(own, end)

    assert {path.name for path in ended} == {"a", "b"}
    assert len(ended) == 2
    assert sorted(path.name for path in own.parent.iterdir()) == ["other", "own"]
    os.close(other)


def test_a_folder_that_cannot_be_ended_stays_and_does_not_keep_the_others(own: Path) -> None:
    bad = dead(own, "bad")
    dead(own, "good")

    def end(folder: Path) -> None:
        if folder == bad:
            raise OSError(errno.ENOSPC, "full")

    end_dead(own, end)
    assert {path.name for path in own.parent.iterdir()} == {"own", "bad"}
    end_dead(own, lambda _folder: None)
    assert {path.name for path in own.parent.iterdir()} == {"own"}


def test_a_folder_that_another_process_removed_before_it_was_locked_is_made_again(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock
    ended: list[Path] = []

    def late(file: int, operation: int) -> None:
        if not ended and not operation & fcntl.LOCK_NB:
            end_dead(own, ended.append)
        real(file, operation)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", late)
        lock = make_locked(own.with_name("starting"))
    end_dead(own, ended.append)

    assert ended == [own.with_name("starting")]
    assert (own.with_name("starting") / LOCK).exists()
    os.close(lock)


def test_a_folder_with_a_journal_is_not_removed(tmp_path: Path) -> None:
    folders = ProcessFolders(tmp_path, lambda sha256: tmp_path / sha256.hex())
    for name in ("temp", "journals"):
        (tmp_path / name).mkdir()
    folders.start()
    (journal,) = (tmp_path / "journals").iterdir()
    (journal / "journal-x").touch()

    folders.end()

    assert (journal / "journal-x").exists()
    assert not list((tmp_path / "temp").iterdir())


async def test_folders_are_durable_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[Path] = set()
    real = os.fsync

    def fsync(file: int) -> None:
        synced.add(Path(os.readlink(f"/proc/self/fd/{file}")))  # noqa: PTH115 - no real path
        real(file)

    root = tmp_path / "brain"
    data_directory: Any = DataDirectory(root, limit_bytes=1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        await data_directory.start()
    (journal,) = (root / "journals").iterdir()
    folders = {tmp_path, root, root / "origin", data_directory.temp.parent, journal.parent, journal}
    shards = len(list((root / "origin").iterdir()))
    await data_directory.stop()

    assert folders <= synced
    assert shards == 256
