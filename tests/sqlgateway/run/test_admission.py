"""Fairness between organizations and environments, without a database."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import patch

import pytest
from django.conf import settings
from django.test import override_settings

from common.errors import PlatformError
from common.principals import Scope
from common.web import client_presence
from sqlgateway.clusters.placements import PlacementCache
from sqlgateway.errors import QueryCancelled, SqlBusy, TooManyQueries
from sqlgateway.run import admission
from sqlgateway.run.admission import Admission
from tests.sqlgateway.run.held_requests import ALICE, CHARLIE, DORA, SANDBOX, Runner
from tests.waiting import wait_until


@pytest.fixture
def runner() -> Iterator[Runner]:
    """Return a gate for three requests, of an environment one, and a queue."""
    with override_settings(
        SQL=replace(
            settings.SQL,
            running=3,
            running_per_organization=2,
            queue=9,
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


def test_an_environment_that_fills_its_part_of_the_queue_is_429(runner: Runner) -> None:
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


def test_organizations_at_full_allowance_keep_out_none_that_runs_nothing(runner: Runner) -> None:
    with patch.object(admission, "QUEUE_WAIT_S", 0.02):
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


def test_a_wait_ends(runner: Runner) -> None:
    with (
        override_settings(SQL=replace(settings.SQL, running=1)),
        patch.object(admission, "QUEUE_WAIT_S", 0.05),
    ):
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
    gate = Admission()

    def work(number: int) -> int:
        try:
            with gate.slot(Scope(number % 2, number % 3)):
                time.sleep(0.001)
                return 1 // (number % 5)
        except (ZeroDivisionError, PlatformError):
            return 0

    with (
        override_settings(SQL=replace(settings.SQL, running=2, running_per_organization=2)),
        patch.object(admission, "QUEUE_WAIT_S", 0.002),
        ThreadPoolExecutor(12) as pool,
    ):
        list(pool.map(work, range(600)))

    for counts in (gate._running, gate._waiting):
        assert (counts.total, counts.of_organization, counts.of_environment) == (0, {}, {})
    assert not gate._queues


def test_the_end_of_a_transaction_has_a_slot_where_its_organization_has_none(
    runner: Runner,
) -> None:
    gate = runner.gate
    runner.start(ALICE, "waits for the transaction's lock")

    with gate.slot_for_end(ALICE), patch.object(admission, "QUEUE_WAIT_S", 0.001):
        # One besides, and it counts: the three are taken when another organization runs.
        with pytest.raises(TooManyQueries), gate.slot_for_end(ALICE):
            pass
        with gate.slot(CHARLIE), pytest.raises(PlatformError), gate.slot_for_end(DORA):
            pass
    with gate.slot_for_end(ALICE):
        pass
    runner.end("waits for the transaction's lock")
    assert gate._running.total == 0


@pytest.fixture
def two_clusters(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """Return three slots, four places to wait, and a cluster for odd organizations."""
    monkeypatch.setattr(PlacementCache, "cluster_of", lambda _, environment_pk: environment_pk % 2)
    limits = replace(settings.SQL, running_per_organization=3, queue=4)
    with override_settings(SQL=limits):
        yield runner


def odd(number: int) -> Scope:
    """Return the environment of an organization on the first cluster."""
    return Scope(2 * number + 1, 2 * number + 1)


EVEN, ALSO_EVEN, THIRD_EVEN = Scope(100, 100), Scope(102, 102), Scope(104, 104)


def test_a_busy_cluster_has_all_slots_and_all_places_while_no_other_is_asked(
    two_clusters: Runner,
) -> None:
    asked = [two_clusters.start(odd(number), f"odd {number}") for number in range(8)]

    assert two_clusters.order == ["odd 0", "odd 1", "odd 2"]
    assert isinstance(asked[7].exception(1), SqlBusy)
    assert not any(future.done() for future in asked[:7])


def test_a_cluster_that_runs_nothing_runs_a_request_beside_one_that_has_all_slots(
    two_clusters: Runner,
) -> None:
    for number in range(3):
        two_clusters.start(odd(number), f"odd {number}")
    two_clusters.start(EVEN, "even")
    two_clusters.start(ALSO_EVEN, "waits")
    assert two_clusters.order[3:] == ["even"]

    two_clusters.end("even")
    assert two_clusters.order[4:] == ["waits"]


def test_free_slots_go_to_the_cluster_that_runs_the_fewest_requests(two_clusters: Runner) -> None:
    with override_settings(SQL=replace(settings.SQL, running=4)):
        for number in range(6):
            two_clusters.start(odd(number), f"odd {number}")
        for scope, name in ((EVEN, "even"), (ALSO_EVEN, "also even"), (THIRD_EVEN, "third even")):
            two_clusters.start(scope, name)
        for number in range(3):
            two_clusters.end(f"odd {number}")

    # The first one that ends was one too many, the second leaves two beside one.
    assert two_clusters.order[4:] == ["even", "also even", "odd 4"]


def test_a_full_queue_gives_up_a_place_of_the_cluster_that_has_the_most(
    two_clusters: Runner,
) -> None:
    asked = [two_clusters.start(odd(number), f"odd {number}") for number in range(7)]
    two_clusters.start(EVEN, "runs")
    waiting = [two_clusters.start(scope, str(scope)) for scope in (ALSO_EVEN, THIRD_EVEN)]
    refused = two_clusters.start(Scope(106, 106), "one more than half")

    assert two_clusters.order[3:] == ["runs"]
    assert [isinstance(future.exception(1), SqlBusy) for future in (*asked[4:], refused)] == [
        True
    ] * 4
    assert not any(future.done() for future in (*asked[:4], *waiting))


def test_sql_has_no_more_threads_than_slots_and_places(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each on a cluster of its own, so that each may run though all slots are taken."""
    monkeypatch.setattr(PlacementCache, "cluster_of", lambda _, environment_pk: environment_pk)
    with override_settings(SQL=replace(settings.SQL, running=3, queue=4)):
        asked = [runner.start(Scope(number, number), str(number)) for number in range(1, 10)]

    assert runner.order == [str(number) for number in range(1, 8)]
    assert [isinstance(future.exception(1), SqlBusy) for future in asked[7:]] == [True, True]
