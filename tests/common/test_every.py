"""What a process does again and again."""

import threading

import pytest

from common.every import Every
from tests.waiting import wait_until


def test_the_function_is_called_again_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    called = threading.Semaphore(0)

    def fail() -> None:
        called.release()
        raise RuntimeError("an error")

    work = Every(0.001, fail, name="failing")
    work.start()
    assert called.acquire(timeout=10)
    assert called.acquire(timeout=10)
    work.stop(10)
    assert "repeated_work_failed" in caplog.text
    assert "failing" in caplog.text


def test_it_starts_once() -> None:
    threads: set[int] = set()
    work = Every(0.001, lambda: threads.add(threading.get_ident()), name="once")
    for _ in range(3):
        work.start()
    wait_until(lambda: bool(threads))
    work.stop(10)
    assert len(threads) == 1


def test_the_function_is_called_once_more_after_the_end_was_requested() -> None:
    was_stopping: list[bool] = []

    def note() -> None:
        was_stopping.append(work.is_stopping)
        if len(was_stopping) == 1:
            # The end is requested while the function runs.
            ending.start()
            wait_until(lambda: work.is_stopping)

    work = Every(0.001, note, name="stopped")
    ending = threading.Thread(target=work.stop, args=[10])
    work.start()
    wait_until(lambda: len(was_stopping) > 1)
    ending.join()
    assert was_stopping == [False, True]


def test_what_was_never_started_ends_without_a_call() -> None:
    called: list[int] = []
    Every(0.001, lambda: called.append(1), name="unused").stop(10)
    assert called == []
