"""Which request computes, and which ones wait."""

import threading
from collections.abc import Iterator

import pytest

from common.web.compute_slots import ComputeSlots, waiting

THREADS = 8


class Pool:
    """Eight threads, and requests that end with the test."""

    def __init__(self) -> None:
        self.slots = ComputeSlots(THREADS)
        self.gates: list[threading.Event] = []

    def hold(self) -> threading.Event:
        """Begin a request that computes until the event is set."""
        started, end = threading.Event(), threading.Event()
        self.gates.append(end)

        def work() -> None:
            started.set()
            end.wait(60)

        self.slots.submit(work)
        assert started.wait(10)
        return end


@pytest.fixture
def pool() -> Iterator[Pool]:
    """Return a pool whose requests all end."""
    made = Pool()
    yield made
    for gate in made.gates:
        gate.set()
    made.slots.shutdown()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the slot to a request for as long as it computes."""
    monkeypatch.setattr("common.web.compute_slots.MAX_WAIT_S", 60.0)


def test_one_request_computes_at_a_time(patient: None, pool: Pool) -> None:
    order: list[str] = []
    end = pool.hold()
    second = pool.slots.submit(lambda: order.append("second"))
    order.append("first")
    end.set()

    second.result(10)
    assert order == ["first", "second"]


def test_a_request_that_waits_lets_others_compute(patient: None, pool: Pool) -> None:
    answers = threading.Event()

    def wait_for_the_database() -> bool:
        with waiting():
            return answers.wait(60)

    waits = [pool.slots.submit(wait_for_the_database) for _ in range(THREADS - 1)]
    pool.slots.submit(answers.set)

    assert all(one.result(10) for one in waits)


def test_a_request_that_computes_for_long_lets_others_compute(pool: Pool) -> None:
    for _ in range(3):
        pool.hold()

    assert pool.slots.submit(lambda: 3).result(10) == 3


def test_a_failed_request_gives_its_slot_back(patient: None, pool: Pool) -> None:
    failed = pool.slots.submit(lambda: 1 // 0)

    assert isinstance(failed.exception(10), ZeroDivisionError)
    assert pool.slots.submit(lambda: 1).result(10) == 1


def test_other_threads_need_no_slot(patient: None, pool: Pool) -> None:
    pool.hold()
    ended = threading.Event()

    def wait_and_end() -> None:
        with waiting():
            pass
        ended.set()

    threading.Thread(target=wait_and_end).start()
    assert ended.wait(10)
