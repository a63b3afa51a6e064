"""Fairness between organizations and environments, without a database."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

from common.errors import PlatformError
from common.principals import Scope
from common.web import client_presence
from sqlgateway.errors import QueryCancelled, SqlBusy, TooManyQueries
from sqlgateway.run.admission import counts
from sqlgateway.run.admission.shared_counts import SharedCounts
from sqlgateway.run.admission.slots import Admission
from tests.sqlgateway.run.held_requests import (
    ALICE,
    CHARLIE,
    DORA,
    SANDBOX,
    Clock,
    Runner,
    stop_time,
)
from tests.waiting import wait_until


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the time by which requests are admitted."""
    return stop_time(monkeypatch)


@pytest.fixture
def runner() -> Iterator[Runner]:
    """Return a gate for three requests, of an environment one, and a queue."""
    with override_settings(
        SQL=replace(
            settings.SQL,
            running=3,
            running_per_organization=2,
            running_per_environment=1,
            queue=9,
            queue_per_environment=3,
            queue_wait_ms=2000,
        )
    ):
        made = Runner()
        yield made
        for end in made.ends.values():
            end.set()
        made.pool.shutdown()


def test_one_environments_queue_does_not_keep_another_waiting(runner: Runner) -> None:
    for name in ("a1", "a2", "a3"):
        runner.start(ALICE, name)
    runner.start(CHARLIE, "c1")

    assert runner.order == ["a1", "c1"]


def test_free_slots_go_round(runner: Runner) -> None:
    with override_settings(SQL=replace(settings.SQL, running=1)):
        for scope, name in (
            (ALICE, "a1"),
            (ALICE, "a2"),
            (ALICE, "a3"),
            (CHARLIE, "c1"),
            (CHARLIE, "c2"),
        ):
            runner.start(scope, name)
        for name in ("a1", "a2", "c1", "a3"):
            runner.end(name)
        wait_until(lambda: len(runner.order) == 5)

    assert runner.order == ["a1", "a2", "c1", "a3", "c2"]


def test_a_full_queue_of_an_environment_is_429(runner: Runner) -> None:
    for name in ("a1", "a2", "a3", "a4"):
        runner.start(ALICE, name)

    refused = runner.start(ALICE, "a5").exception(1)

    assert isinstance(refused, TooManyQueries)
    assert (refused.status, refused.code, refused.retry_after_s) == (429, "too_many_queries", 1)


def test_an_organizations_environments_share_its_slots_in_turn(runner: Runner) -> None:
    with override_settings(SQL=replace(settings.SQL, running_per_organization=1)):
        for scope, name in ((ALICE, "a1"), (ALICE, "a2"), (ALICE, "a3"), (SANDBOX, "s1")):
            runner.start(scope, name)
        runner.start(CHARLIE, "c1")
        for name in ("a1", "a2", "s1"):
            runner.end(name)

    assert runner.order == ["a1", "c1", "a2", "s1", "a3"]


def test_an_organization_runs_all_it_may_only_while_no_other_is_served(
    runner: Runner, clock: Clock
) -> None:
    runner.start(CHARLIE, "c1")
    runner.end("c1")
    for scope, name in ((ALICE, "a1"), (SANDBOX, "s1")):
        runner.start(scope, name)
    assert runner.order == ["c1", "a1"]

    runner.end("a1")
    assert runner.order == ["c1", "a1", "s1"]
    # Now Charlie's was served too long ago to count: Alice's organization may run two.
    clock.pass_s(counts.ACTIVE_S)
    runner.start(ALICE, "a2")
    assert runner.order == ["c1", "a1", "s1", "a2"]


class SharedGate:
    """The gate while another organization is served; Alice's may run three, an environment two."""

    def __init__(self, runner: Runner, clock: Clock) -> None:
        self.start, self.end, self.order = runner.start, runner.end, runner.order
        self.pass_s = clock.pass_s
        self.slot_for_end = runner.gate.slot_for_end
        self._clock = clock
        self.serve()

    def serve(self) -> None:
        """Serve the other organization once more."""
        name = f"other {self._clock.ahead_s}"
        self.start(CHARLIE, name)
        self.end(name)
        self.order.remove(name)

    def become_slow(self) -> None:
        """Let all that runs have run for so long, while the other organization is served."""
        self.pass_s(counts.SLOW_S)
        self.serve()


@pytest.fixture
def gate(runner: Runner, clock: Clock) -> Iterator[SharedGate]:
    """Return the gate."""
    limits = replace(settings.SQL, running=9, running_per_organization=3, running_per_environment=2)
    with override_settings(SQL=limits):
        yield SharedGate(runner, clock)


def test_beside_others_an_organization_runs_one_at_a_time(gate: SharedGate) -> None:
    for name in ("a1", "a2"):
        gate.start(ALICE, name)
    gate.start(SANDBOX, "s1")
    assert gate.order == ["a1"]

    with override_settings(SQL=replace(settings.SQL, queue_wait_ms=20)):
        refused = gate.start(ALICE, "a3").exception(1)
    assert isinstance(refused, TooManyQueries)
    for name in ("a1", "a2"):
        gate.end(name)
    assert gate.order == ["a1", "a2", "s1"]


def test_beside_slow_statements_an_organization_runs_as_many_as_an_environment_may(
    gate: SharedGate,
) -> None:
    gate.start(ALICE, "slow 1")
    gate.become_slow()
    # Those that come and go beside it are not slow, and each may run as it comes.
    for name in ("a1", "a2"):
        gate.start(ALICE, name)
        gate.end(name)
    gate.start(ALICE, "slow 2")
    gate.become_slow()

    refused = gate.start(SANDBOX, "s1").exception(1)
    assert isinstance(refused, TooManyQueries)
    assert gate.order == ["slow 1", "a1", "a2", "slow 2"]


def test_a_commit_runs_at_once_beside_a_slow_statement_and_a_waiting_one(gate: SharedGate) -> None:
    gate.start(ALICE, "waits for the transaction's lock")
    gate.start(ALICE, "a1")
    # "a1" has not looked yet whether there is a place for it now.
    gate.become_slow()

    with gate.slot_for_end(ALICE):
        assert gate.order[1:] == ["a1"]


def test_a_waiting_request_runs_as_soon_as_the_statement_before_it_is_slow(
    gate: SharedGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "SLOW_S", 0.1)
    for name in ("a1", "a2"):
        gate.start(ALICE, name)
    assert gate.order == ["a1"]

    gate.pass_s(0.1)
    wait_until(lambda: gate.order == ["a1", "a2"])


@pytest.mark.parametrize("allowed", [3, 9])
def test_beside_others_an_organization_runs_as_many_as_the_setting_and_its_limits_allow(
    gate: SharedGate, allowed: int
) -> None:
    with override_settings(SQL=replace(settings.SQL, running_beside_others=allowed)):
        for name in ("a1", "a2", "a3"):
            gate.start(ALICE, name)
        for name in ("s1", "s2"):
            gate.start(SANDBOX, name)
    assert gate.order == ["a1", "a2", "s1"]


def test_organizations_at_full_allowance_keep_out_none_that_runs_nothing(runner: Runner) -> None:
    two_each = replace(
        settings.SQL, queue_wait_ms=20, running_per_environment=2, running_beside_others=2
    )
    with override_settings(SQL=two_each):
        runner.start(ALICE, "a1")
        runner.start(CHARLIE, "c1")
        refused = runner.start(SANDBOX, "s1").exception(1)
        runner.start(DORA, "d1")

    assert isinstance(refused, SqlBusy)
    assert runner.order == ["a1", "c1", "d1"]


def test_one_organization_never_fills_the_queue(runner: Runner) -> None:
    with override_settings(SQL=replace(settings.SQL, queue=4)):
        for name in ("a1", "a2", "a3"):
            runner.start(ALICE, name)
        runner.start(SANDBOX, "s1")
        refused = runner.start(SANDBOX, "s2")
        runner.start(CHARLIE, "c1")
        waiting = runner.start(CHARLIE, "c2")

        assert isinstance(refused.exception(1), TooManyQueries)
        assert not waiting.done()


def test_no_request_waits_behind_slow_statements_of_its_organization(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "SLOW_S", -1.0)
    runner.start(ALICE, "a1")
    refused = runner.start(ALICE, "a2")

    assert isinstance(refused.exception(1), TooManyQueries)


def test_a_wait_ends(runner: Runner) -> None:
    with override_settings(SQL=replace(settings.SQL, queue_wait_ms=50, running=1)):
        runner.start(ALICE, "a1")
        own = runner.start(ALICE, "a2").exception(1)
        other = runner.start(CHARLIE, "c1").exception(1)

        assert isinstance(own, TooManyQueries)
        assert isinstance(other, SqlBusy)
        assert (other.status, other.retry_after_s) == (503, 1)
        runner.end("a1")
        runner.start(CHARLIE, "c2")
    assert runner.order == ["a1", "c2"]


def test_a_request_whose_client_left_the_queue_does_not_run(runner: Runner) -> None:
    ours, theirs = socket.socketpair()
    runner.start(ALICE, "a1")
    with ours, theirs:
        client_presence.set_client_socket(ours)
        left = runner.start(ALICE, "a2")
        client_presence.set_client_socket(None)
        theirs.close()
        runner.end("a1")

        assert isinstance(left.exception(1), QueryCancelled)
    runner.start(ALICE, "a3")
    assert runner.order == ["a1", "a3"]


def test_no_slot_is_ever_lost() -> None:
    gate = Admission(SharedCounts(1, 256))

    def work(number: int) -> int:
        try:
            with gate.slot(Scope(number % 2, number % 3)):
                time.sleep(0.001)
                return 1 // (number % 5)
        except (ZeroDivisionError, PlatformError):
            return 0

    with (
        override_settings(
            SQL=replace(settings.SQL, running=2, running_per_environment=1, queue_wait_ms=2)
        ),
        ThreadPoolExecutor(12) as pool,
    ):
        list(pool.map(work, range(600)))

    assert (gate._running.total, gate._running._of_environment, gate._running._of_organization) == (
        0,
        {},
        {},
    )
    assert (gate._waits, gate._waiting) == (0, {})


def test_the_end_of_a_transaction_has_a_slot_where_its_organization_has_none(
    runner: Runner,
) -> None:
    gate = runner.gate
    runner.start(ALICE, "waits for the transaction's lock")

    with gate.slot_for_end(ALICE), override_settings(SQL=replace(settings.SQL, queue_wait_ms=1)):
        # One besides, and it counts: the three are taken when another organization runs.
        with pytest.raises(TooManyQueries), gate.slot_for_end(ALICE):
            pass
        with gate.slot(CHARLIE), pytest.raises(PlatformError), gate.slot_for_end(DORA):
            pass
    with gate.slot_for_end(ALICE):
        pass
    runner.end("waits for the transaction's lock")
    assert gate._running.total == 0
