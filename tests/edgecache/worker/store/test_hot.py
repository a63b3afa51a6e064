"""A worker's hot objects: dropped with their files, and correct even if the disk is not."""

from pathlib import Path

import pytest

from edgecache.worker.store.files import Files
from tests.edgecache.worker.running import Worker, altered, name

CONTENT = b"hot" * 1000


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Return files; one of them is in memory."""
    files = Files(tmp_path)
    keep(files)
    for _ in range(3):
        assert files.cached(name(CONTENT), 0, 3000, 3000, organization_id=1) == CONTENT
    assert name(CONTENT) in files.hot
    return files


def keep(files: Files) -> None:
    """Store CONTENT."""
    file, path = files.create()
    with file:
        file.write(CONTENT)
    files.keep(path, name(CONTENT))


def test_a_range_of_a_hot_object_is_correct(files: Files) -> None:
    assert files.cached(name(CONTENT), 1, 5, 3000, organization_id=1) == CONTENT[1:6]
    files.close()


def test_removing_a_file_drops_its_bytes_from_memory(files: Files) -> None:
    files.unlink(name(CONTENT))

    assert files.cached(name(CONTENT), 0, 3000, 3000, organization_id=1) is None
    files.close()


def test_a_file_that_was_stored_again_is_read_again(files: Files) -> None:
    keep(files)

    assert name(CONTENT) not in files.hot
    assert files.cached(name(CONTENT), 0, 3000, 3000, organization_id=1) == CONTENT
    files.close()


def test_a_corrupted_file_does_not_affect_reads_from_memory(worker: Worker) -> None:
    assert worker.put(CONTENT).status == 201
    for _ in range(3):
        assert worker.get(CONTENT).body == CONTENT
    file = worker.file(CONTENT)
    file.write_bytes(altered(CONTENT))

    assert worker.get(CONTENT).body == CONTENT
    assert worker.get(CONTENT, headers={"Range": "bytes=0-9"}).body == CONTENT[:10]
