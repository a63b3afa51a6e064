"""Which requests compute, which wait, and that no slot is lost."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial

import pytest

from common.web.compute_slots import ComputeSlots, waiting
from tests.waiting import wait_until

Job = tuple[Callable[[], object], "Future[object]"]


class Pool:
    """Two slots over eight threads, for functions."""

    def __init__(self) -> None:
        self.slots = ComputeSlots(self._work, slots=2, threads=8)
        self.gates: list[threading.Event] = []

    def _work(self, job: Job) -> None:
        function, future = job
        future.set_result(function())

    def run(self, function: Callable[[], object], key: str | None = None) -> "Future[object]":
        """Submit a function."""
        future: Future[object] = Future()
        self.slots.submit((function, future), key)
        return future

    def returning(self, count: int) -> bool:
        """True if this many wait for a slot after something else."""
        return len(self.slots._returning) == count

    def gate(self) -> threading.Event:
        """Return an event that the test's end sets."""
        self.gates.append(threading.Event())
        return self.gates[-1]

    def hold(self) -> threading.Event:
        """Begin a job that keeps its slot until the event is set."""
        started, end = threading.Event(), self.gate()

        def work() -> None:
            started.set()
            end.wait(10)

        self.run(work)
        started.wait(10)
        return end


@pytest.fixture
def pool() -> Iterator[Pool]:
    """Return a pool whose jobs all end."""
    made = Pool()
    yield made
    for gate in made.gates:
        gate.set()


def test_no_more_requests_compute_than_there_are_lanes(pool: Pool) -> None:
    first, _ = pool.hold(), pool.hold()
    third = pool.run(lambda: 3)

    assert not third.done()
    assert pool.slots.is_backed_up
    first.set()
    assert third.result(10) == 3


def test_a_request_that_waits_gives_its_lane_to_another(pool: Pool) -> None:
    end = pool.gate()

    def wait() -> bool:
        with waiting():
            return end.wait(10)

    waits = [pool.run(wait) for _ in range(4)]
    assert pool.run(lambda: 5).result(10) == 5
    end.set()
    assert all(one.result(10) for one in waits)


def test_a_lane_that_is_kept_too_long_is_given_to_another(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.web.compute_slots.MAX_HOLD_S", -1.0)
    held = [pool.hold(), pool.hold()]
    third = pool.run(lambda: 3)
    pool.slots.reclaim_overdue_slots()

    assert third.result(10) == 3
    for end in held:
        end.set()
    # What the two gave back twice is counted once.
    monkeypatch.undo()
    pool.hold(), pool.hold()
    assert not pool.run(lambda: 6).done()
    assert pool.slots.is_backed_up


def test_callers_take_turns(pool: Pool) -> None:
    order: list[str] = []
    held = [pool.hold(), pool.hold()]
    jobs = [pool.run(lambda: order.append("alice"), "alice") for _ in range(3)]
    jobs.append(pool.run(lambda: order.append("charlie"), "charlie"))
    held[0].set()
    for job in jobs:
        job.result(10)

    assert order == ["alice", "charlie", "alice", "alice"]


def test_callers_that_return_from_a_wait_take_turns(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.web.compute_slots.MAX_HOLD_S", 10.0)
    order: list[str] = []

    def wait(caller: str, end: threading.Event) -> None:
        with waiting():
            end.wait(10)
        order.append(caller)

    callers = ["alice", "alice", "alice", "charlie"]
    ends = [pool.gate() for _ in callers]
    jobs = [pool.run(partial(wait, *one), one[0]) for one in zip(callers, ends, strict=True)]
    held = [pool.hold(), pool.hold()]
    for number, end in enumerate(ends, start=1):
        end.set()
        wait_until(partial(pool.returning, number))
    held[0].set()
    for job in jobs:
        job.result(10)

    assert order == ["alice", "charlie", "alice", "alice"]


def test_a_failed_request_costs_no_thread(pool: Pool) -> None:
    for _ in range(20):
        future: Future[object] = Future()
        future.set_result(None)
        pool.slots.submit((lambda: None, future), "")

    assert pool.run(lambda: 1).result(10) == 1


def test_a_key_leaves_threads_to_others(pool: Pool) -> None:
    ends = [pool.gate() for _ in range(8)]
    started: list[int] = []

    def hold(number: int) -> None:
        started.append(number)
        with waiting():
            ends[number].wait(10)

    slow = [pool.run(partial(hold, number), "slow") for number in range(8)]
    assert pool.run(lambda: 1, "other").result(10) == 1
    assert pool.run(lambda: 2).result(10) == 2
    # Half of the threads; the rest waits for its own.
    assert sorted(started) == [0, 1, 2, 3]
    for end in ends:
        end.set()
    for future in slow:
        future.result(10)
    # Two compute concurrently, so that one may overtake the other.
    assert sorted(started) == list(range(8))
