"""Two web processes, of which each knows what the other runs and lets wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

from sqlgateway.errors import TooManyQueries
from sqlgateway.run.admission import counts
from sqlgateway.run.admission.shared_counts import SharedCounts
from tests.sqlgateway.run.held_requests import ALICE, CHARLIE, SANDBOX, Clock, Runner, stop_time
from tests.waiting import wait_until


class Processes:
    """Two processes' gates. While another organization is served each runs one in all."""

    def __init__(self, clock: Clock) -> None:
        self.counts = SharedCounts(2, 256)
        self.first, self.second = Runner(self.counts), Runner(self.counts.in_row(1))
        self._clock = clock

    def serve_another(self) -> None:
        """Serve another organization in the first process."""
        name = f"c {self._clock.ahead_s}"
        self.first.start(CHARLIE, name)
        self.first.end(name)
        self.first.order.remove(name)

    def pass_s(self, seconds: float) -> None:
        """Move time on while the other organization is served."""
        self._clock.pass_s(seconds)
        self.serve_another()

    def now(self) -> float:
        """Return the time by which requests are admitted."""
        return self._clock.monotonic()

    def end(self) -> None:
        """Let all requests end."""
        for runner in (self.first, self.second):
            for held in runner.ends.values():
                held.set()
            runner.pool.shutdown()


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Return two processes; another organization was just served in the first."""
    made = Processes(stop_time(monkeypatch))
    made.serve_another()
    yield made
    made.end()


@contextmanager
def waits(ms: int) -> Iterator[None]:
    """Let requests wait so long for their turn."""
    with override_settings(SQL=replace(settings.SQL, queue_wait_ms=ms)):
        yield


def test_beside_others_an_organization_runs_one_in_all_processes(processes: Processes) -> None:
    processes.first.start(ALICE, "a1")
    processes.pass_s(counts.SHORT_S)

    with waits(20):
        refused = processes.second.start(ALICE, "a2").exception(1)

    assert isinstance(refused, TooManyQueries)
    # Others run in both processes.
    processes.second.start(CHARLIE, "c1")
    assert processes.second.order == ["c1"]


def test_two_processes_take_turns_with_an_organization(processes: Processes) -> None:
    processes.first.start(ALICE, "a1")
    processes.pass_s(counts.SHORT_S)
    processes.first.start(ALICE, "a2")
    processes.second.start(ALICE, "b1")
    processes.second.start(ALICE, "b2")

    processes.first.end("a1")
    assert (processes.first.order, processes.second.order) == (["a1"], ["b1"])
    processes.pass_s(counts.SHORT_S)
    processes.second.end("b1")
    assert (processes.first.order, processes.second.order) == (["a1", "a2"], ["b1"])


def test_a_process_that_does_not_take_its_turn_loses_it(processes: Processes) -> None:
    processes.first.start(ALICE, "a1")
    processes.pass_s(counts.SHORT_S)
    processes.first.start(ALICE, "a2")
    # Of a process that hangs.
    processes.counts.waiting.add(1, ALICE.organization_id, 0.0)

    processes.first.end("a1")
    assert processes.first.order == ["a1"]

    processes.pass_s(counts.RESERVED_S)
    wait_until(lambda: processes.first.order == ["a1", "a2"])


def test_what_a_process_that_was_killed_ran_does_not_count(processes: Processes) -> None:
    processes.first.start(ALICE, "a1")
    processes.pass_s(counts.SHORT_S)

    processes.counts.clear(0)
    processes.serve_another()
    processes.second.start(ALICE, "a2")

    assert processes.second.order == ["a2"]


def test_short_requests_do_not_wait_for_those_of_another_process(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "SHORT_S", 0.5)
    processes.first.start(ALICE, "a1")
    processes.second.start(ALICE, "a2")

    assert (processes.first.order, processes.second.order) == (["a1"], ["a2"])


def test_what_follows_a_long_request_counts_in_all_processes_at_once(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "SHORT_S", 0.5)
    processes.first.start(ALICE, "a1")
    processes.pass_s(counts.SHORT_S)
    processes.first.end("a1")
    processes.first.start(ALICE, "a2")

    with waits(20):
        refused = processes.second.start(ALICE, "a3").exception(1)

    assert isinstance(refused, TooManyQueries)
    assert processes.first.order == ["a1", "a2"]


def test_slow_requests_of_one_process_do_not_keep_those_of_another_waiting(
    processes: Processes,
) -> None:
    processes.first.start(ALICE, "slow")
    processes.pass_s(counts.SLOW_S)
    processes.second.start(ALICE, "a1")

    assert processes.second.order == ["a1"]


def test_no_slot_is_reserved_for_a_process_whose_environment_is_full(processes: Processes) -> None:
    with override_settings(SQL=replace(settings.SQL, running_per_environment=1)):
        processes.first.start(ALICE, "slow")
        processes.pass_s(counts.SLOW_S)
        processes.second.start(SANDBOX, "b1")
        processes.pass_s(counts.SHORT_S)
        processes.first.start(ALICE, "a1")
        processes.second.start(SANDBOX, "b2")

        processes.second.end("b1")
        assert (processes.first.order, processes.second.order) == (["slow"], ["b1", "b2"])


def test_another_organizations_slot_does_not_end_a_reservation(
    processes: Processes,
) -> None:
    processes.first.start(ALICE, "a1")
    processes.pass_s(counts.SHORT_S)
    processes.first.start(ALICE, "a2")
    # Of a process that hangs.
    processes.counts.waiting.add(1, ALICE.organization_id, 0.0)
    processes.counts.waiting.add(0, CHARLIE.organization_id, 0.0)

    processes.first.end("a1")
    processes.counts.in_row(1).wake_another(CHARLIE.organization_id)
    processes.first.start(CHARLIE, "c1")
    assert processes.first.order == ["a1", "c1"]


def test_a_request_whose_slot_is_free_when_its_wait_ends_runs(processes: Processes) -> None:
    processes.counts.running.add(1, ALICE.organization_id, processes.now() - 2 * counts.SHORT_S)
    with waits(90):
        processes.first.start(ALICE, "a1")
        processes.counts.clear(1)
        assert processes.first.order == []
        wait_until(lambda: processes.first.order == ["a1"])


@pytest.mark.parametrize("reads", [1, 2, 3])
def test_a_request_runs_though_another_process_ends_its_own_meanwhile(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    processes.first.start(ALICE, "a1")
    processes.pass_s(counts.SHORT_S)
    table = processes.counts.running
    read = table.of
    left = iter(range(reads))

    def read_until_it_ends(organization_id: int) -> list[tuple[int, float]]:
        if next(left, None) is None:
            processes.first.ends["a1"].set()
            wait_until(lambda: not read(organization_id))
        return read(organization_id)

    monkeypatch.setattr(table, "of", read_until_it_ends)
    processes.second.start(ALICE, "a2")

    wait_until(lambda: processes.second.order == ["a2"])


def test_requests_beyond_the_row_of_a_process_run_without_being_counted() -> None:
    counts = SharedCounts(1, 1)
    entries = [counts.running.add(0, ALICE.organization_id, 1.0) for _ in range(2)]
    assert len(counts.running.of(ALICE.organization_id)) == 1
    for entry in entries:
        counts.running.remove(entry)
    assert counts.running.of(ALICE.organization_id) == []
