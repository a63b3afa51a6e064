"""Files are known to be right as long as nothing about them has changed."""

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgecache.runtime import verified_files
from edgecache.runtime.verified_files import VerifiedFiles, state_of

CONTENT = os.urandom(3 * verified_files.PIECE_BYTES + 7)
NAME = hashlib.sha256(CONTENT).digest()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    """Return a file with CONTENT, open for reading and writing."""
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    descriptor = os.open(path, os.O_RDWR)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it two seconds later."""
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns + 2 * verified_files.SETTLED_NS)


@pytest.mark.usefixtures("_settled")
def test_a_verified_file_is_known_until_it_is_altered(opened: int) -> None:
    files = VerifiedFiles()
    state = files.verify(NAME, opened)
    assert state is not None
    assert files.knows(NAME, state_of(opened))
    while state_of(opened).ctime_ns == state.ctime_ns:
        # The clock of files ticks every few milliseconds.
        os.pwrite(opened, CONTENT[:1], 0)
    os.utime(opened, ns=(state.mtime_ns, state.mtime_ns))
    assert state_of(opened).mtime_ns == state.mtime_ns
    assert not files.knows(NAME, state_of(opened))


def test_a_file_that_was_just_changed_is_verified_each_time(opened: int) -> None:
    files = VerifiedFiles()
    assert files.verify(NAME, opened) == state_of(opened)
    assert not files.knows(NAME, state_of(opened))


@pytest.mark.usefixtures("_settled")
def test_a_wrong_file_is_not_known(opened: int) -> None:
    files = VerifiedFiles()
    os.pwrite(opened, bytes([CONTENT[-1] ^ 1]), len(CONTENT) - 1)
    assert files.verify(NAME, opened) is None
    assert not files.knows(NAME, state_of(opened))


@pytest.mark.usefixtures("_settled")
def test_a_file_that_changes_while_it_is_read_is_read_again(
    opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pread, calls = os.pread, 0

    def altering(descriptor: int, count: int, position: int) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 2:
            # The beginning, which was read already.
            os.pwrite(opened, bytes([CONTENT[0] ^ 1]), 0)
        return pread(descriptor, count, position)

    monkeypatch.setattr(os, "pread", altering)
    assert VerifiedFiles().verify(NAME, opened) is None


@pytest.mark.usefixtures("_settled")
def test_only_so_many_are_remembered(opened: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified_files, "MAX_FILES", 1)
    files, state = VerifiedFiles(), state_of(opened)
    files.note(b"first", state, began_ns=time.time_ns())
    other = state._replace(inode=state.inode + 1)
    files.note(b"second", other, began_ns=time.time_ns())
    assert not files.knows(b"first", state)
    assert files.knows(b"second", other)
