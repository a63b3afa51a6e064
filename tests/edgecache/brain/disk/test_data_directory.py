"""Staged files: cancelled operations leave no open and no leftover files."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

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
    assert [path.name for path in data_directory.temp.iterdir()] == ["lock"]
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

    assert [path.name for path in data_directory.temp.iterdir()] == ["lock"]
    assert open_files(data_directory.temp) == {"lock"}
    data_directory.threads = many
    threads.stop()


async def test_a_cancellation_while_a_file_is_opened_closes_it(
    data_directory: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data_directory.root / "parts" / "one"
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


async def test_a_sync_that_fails_is_not_tried_again_before_its_time(
    data_directory: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    paused, go_on, real = asyncio.Event(), asyncio.Event(), asyncio.sleep

    def fail() -> None:
        tried.append(1)
        raise OSError(errno.EIO, "the disk")

    async def sleep(seconds: float) -> None:
        if seconds != files.SYNC_EVERY_S:
            await real(seconds)
            return
        paused.set()
        await go_on.wait()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with monkeypatch.context() as patch:
        patch.setattr(data_directory.journal, "sync", fail)
        data_directory.sync_soon()
        await until(paused.is_set)
        data_directory.sync_soon()
        await data_directory.run(int)
        assert tried == [1]
        go_on.set()
        data_directory.sync_soon()
        await until(lambda: len(tried) == 2)


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


async def test_a_part_that_cannot_be_removed_keeps_no_other_part(
    data_directory: DataDirectory,
) -> None:
    # The rows are gone, so that a caller can do nothing about it.
    data_directory.part_path("bad").mkdir(parents=True)
    good = data_directory.part_path("good")
    good.write_bytes(b"x")
    await data_directory.drop_parts(["bad", "good"])
    assert not good.exists()
