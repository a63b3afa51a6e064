"""Staged files: cancelled operations leave no open and no leftover files."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from common.machine.errors import StartError
from edgecache.brain.core.values import Span
from edgecache.brain.disk import data_directory as files
from edgecache.brain.disk.data_directory import BUFFER_BYTES, DataDirectory
from edgecache.brain.disk.syncing import write_whole
from edgecache.runtime.threads import FairThreads
from tests.edgecache.brain.brains import MIB, until
from tests.edgecache.brain.held import Held

# Long enough for an operation that nothing blocks.
SHORTLY_S = 0.2


@pytest.fixture
async def data_directory(tmp_path: Path) -> AsyncIterator[DataDirectory]:
    """Return a new data directory."""
    one = DataDirectory(tmp_path / "brain", limit_bytes=MIB)
    await one.start()
    yield one
    await one.stop()


async def test_a_file_is_not_closed_while_a_cancelled_writers_thread_writes_to_it(
    data_directory: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, write_all = Held(), write_whole
    outcomes: list[str] = []

    def slow_write(file: int, data: bytes) -> None:
        held.hold()
        try:
            write_all(file, data)
        except OSError:
            # These bytes would go into another file that was opened since.
            outcomes.append("closed")
        else:
            outcomes.append("written")

    monkeypatch.setattr(files, "write_whole", slow_write)
    receiver = data_directory.receive()
    writing = asyncio.create_task(receiver.write(b"x" * BUFFER_BYTES))
    await held.came()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    discarding = asyncio.create_task(receiver.discard())
    await asyncio.wait({discarding}, timeout=SHORTLY_S)
    held.go_on()
    await discarding

    assert outcomes == ["written"]
    assert not list(data_directory.temp.iterdir())
    assert data_directory.used_bytes == 0


async def test_a_discarded_file_is_deleted_even_if_the_caller_is_cancelled(
    data_directory: DataDirectory,
) -> None:
    receiver = data_directory.receive()
    await receiver.write(b"x" * BUFFER_BYTES)
    held, threads = Held(), FairThreads(1, "one")
    data_directory.threads, many = threads, data_directory.threads
    blocking = asyncio.create_task(data_directory.run(held.hold))
    await held.came()

    discarding = asyncio.create_task(receiver.discard())
    await asyncio.sleep(0)
    discarding.cancel()
    await asyncio.gather(discarding, return_exceptions=True)
    held.go_on()
    await blocking
    await data_directory.run(int)

    assert not list(data_directory.temp.iterdir())
    assert open_files(data_directory.temp) == set()
    data_directory.threads = many
    threads.stop()


async def test_a_cancellation_while_a_file_is_opened_closes_it(
    data_directory: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data_directory.objects / "one"
    path.write_bytes(b"bytes")
    held, opened = Held(), os.open

    def slow_open(name: Any, *args: Any, **options: Any) -> int:
        file = opened(name, *args, **options)
        if name == path:
            held.hold()
        return file

    monkeypatch.setattr(os, "open", slow_open)
    reading = asyncio.ensure_future(anext(data_directory.read(path, Span(0, 5))))
    await held.came()
    assert open_files(path.parent) == {"one"}
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    held.go_on()

    await until(lambda: not open_files(path.parent))


def open_files(folder: Path) -> set[str]:
    """Return the names of the files of a folder that this process has open."""
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, not paths
        try:
            target = Path(os.readlink(f"/proc/self/fd/{name}"))  # noqa: PTH115 - no real path
        except FileNotFoundError:
            continue
        if target.parent == folder:
            found.add(target.name)
    return found


async def test_what_a_killed_process_left_is_removed_when_none_uses_the_directory(
    tmp_path: Path, data_directory: DataDirectory
) -> None:
    left = data_directory.temp / "left"
    left.write_bytes(b"half")
    second = DataDirectory(tmp_path / "brain", limit_bytes=MIB)
    await second.start()
    assert left.exists()
    await second.stop()

    await data_directory.stop()
    third = DataDirectory(tmp_path / "brain", limit_bytes=MIB)
    await third.start()
    assert not left.exists()
    await third.stop()


@pytest.mark.parametrize("name", ["origin", "journals", "parts"])
async def test_a_directory_of_a_former_version_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "brain" / name).mkdir(parents=True)
    directory = DataDirectory(tmp_path / "brain", limit_bytes=MIB)
    with pytest.raises(StartError, match="another ZDATA_DIR"):
        await directory.start()
    await directory.stop()
