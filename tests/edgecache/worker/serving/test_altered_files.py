"""A file that was altered, replaced, cut or grown is not sent, to a brain or to a client."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.edgecache.alterations import cut, flip, grow, replace
from tests.edgecache.worker.running import Worker, name

pytestmark = pytest.mark.slow

LARGE = bytes(range(256)) * 4096


@pytest.mark.parametrize("alter", [flip, replace, cut, grow])
@pytest.mark.parametrize("size", [5000, 2**20], ids=["small", "large"])
@pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "brain"])
def test_an_altered_file_is_dropped_and_never_sent(
    lasting: Worker, alter: Callable[[Path], None], size: int, is_direct: bool
) -> None:
    worker, content = lasting, os.urandom(size)
    assert worker.put(content).status == 201

    def get(**headers: str) -> tuple[int, bytes]:
        if is_direct:
            answer = worker.show(worker.direct_ticket(content), content, headers)
        else:
            answer = worker.get(content, headers=headers)
        return answer.status, answer.body

    # Once, so that a small one is not in memory.
    assert get(range="bytes=1-9") == (206, content[1:10])
    alter(worker.file(content))
    middle = len(content) // 2
    assert get(range=f"bytes={middle}-{middle + 9}")[0] == 404
    assert get()[0] == 404
    worker.wait_until(lambda: not worker.file(content).exists())
    worker.brain.wait_for(lambda: name(content) not in worker.brain.held())
    assert worker.put(content).status == 201
    assert get() == (200, content)


def test_a_range_beside_the_altered_byte_is_not_sent_either(worker: Worker) -> None:
    assert worker.put(LARGE).status == 201
    flip(worker.file(LARGE))
    assert worker.get(LARGE, headers={"range": "bytes=0-9"}).status == 404
    assert worker.metric("corrupted_files_total") == 1


def test_a_file_with_other_times_and_the_same_bytes_is_sent(worker: Worker) -> None:
    assert worker.put(LARGE).status == 201
    assert worker.get(LARGE).body == LARGE
    os.utime(worker.file(LARGE))
    worker.file(LARGE).chmod(0o640)
    assert worker.get(LARGE).body == LARGE
    assert worker.metric("corrupted_files_total") == 0
