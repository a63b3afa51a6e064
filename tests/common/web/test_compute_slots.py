"""Which task computes, which waits, and that the slot is not lost."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from common.web.compute_slots import ComputeSlots, waiting
from tests.waiting import wait_until

THREADS = 8


class Pool:
    """Eight threads, and tasks that end with the test."""

    def __init__(self) -> None:
        self.slots = ComputeSlots(THREADS)
        self.gates: list[threading.Event] = []

    def gate(self) -> threading.Event:
        """Return an event that the test's end sets."""
        self.gates.append(threading.Event())
        return self.gates[-1]

    def hold(self) -> threading.Event:
        """Begin a task that computes until the event is set."""
        started, end = threading.Event(), self.gate()

        def work() -> None:
            started.set()
            end.wait(10)

        self.slots.submit(work)
        assert started.wait(10)
        return end

    def wait(self, end: threading.Event, order: list[str], name: str) -> "Future[None]":
        """Begin a task that waits for an event without computing, and then notes its name."""
        started = threading.Event()

        def work() -> None:
            with waiting():
                started.set()
                end.wait(10)
            order.append(name)

        future = self.slots.submit(work)
        assert started.wait(10)
        return future


@pytest.fixture
def pool() -> Iterator[Pool]:
    """Return a pool whose tasks all end."""
    made = Pool()
    yield made
    for gate in made.gates:
        gate.set()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the slot to a thread for ever."""
    monkeypatch.setattr("common.web.compute_slots.MAX_HOLD_S", 600.0)


def test_one_task_computes_at_a_time(patient: None, pool: Pool) -> None:
    first = pool.hold()
    second = pool.slots.submit(lambda: 2)

    assert not second.done()
    first.set()
    assert second.result(10) == 2


def test_a_task_that_waits_lets_another_compute(patient: None, pool: Pool) -> None:
    end, order = pool.gate(), list[str]()
    waits = [pool.wait(end, order, "waited") for _ in range(4)]

    assert pool.slots.submit(lambda: 5).result(10) == 5
    end.set()
    for task in waits:
        task.result(10)
    assert order == ["waited"] * 4


def test_a_task_that_computes_for_too_long_lets_another_compute(pool: Pool) -> None:
    held = [pool.hold() for _ in range(3)]

    assert pool.slots.submit(lambda: 3).result(10) == 3
    for end in held:
        end.set()


def test_a_slot_that_was_lost_is_not_given_back_for_its_next_holder(pool: Pool) -> None:
    overdue = pool.hold()
    order: list[str] = []
    end = pool.gate()
    waits = pool.wait(end, order, "waited")
    holder = pool.hold()
    overdue.set()
    end.set()

    waits.result(10)
    holder.set()
    assert pool.slots.submit(lambda: 1).result(10) == 1


def test_a_task_that_has_waited_computes_before_new_ones(patient: None, pool: Pool) -> None:
    order: list[str] = []
    end = pool.gate()
    pool.wait(end, order, "old")
    holder = pool.hold()
    new = pool.slots.submit(lambda: order.append("new"))
    end.set()
    wait_until(lambda: pool.slots._returning)
    holder.set()
    new.result(10)

    assert order == ["old", "new"]


def test_tasks_beyond_the_threads_run_when_others_have_ended(patient: None, pool: Pool) -> None:
    end, order = pool.gate(), list[str]()
    for _ in range(THREADS):
        pool.wait(end, order, "waited")
    late = pool.slots.submit(lambda: order.append("late"))

    assert not late.done()
    end.set()
    late.result(10)


def test_a_failed_task_costs_no_thread(pool: Pool) -> None:
    failures = [pool.slots.submit(lambda: 1 // 0) for _ in range(3 * THREADS)]

    assert all(isinstance(one.exception(10), ZeroDivisionError) for one in failures)
    assert pool.slots.submit(lambda: 1).result(10) == 1
