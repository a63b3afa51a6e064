"""Heartbeats and node statistics."""

import pytest

from edgecache.brain.nodes.health import (
    CHECKS_S,
    MAX_BACKOFF_S,
    Health,
    IntegrityChecks,
    NodeStatistics,
    by_heartbeat,
)


@pytest.mark.parametrize(
    ("age_s", "health"),
    [
        (None, Health.OFFLINE),
        (0.0, Health.ONLINE),
        (24.9, Health.ONLINE),
        (25.1, Health.SUSPECT),
        (44.9, Health.SUSPECT),
        (45.0, Health.OFFLINE),
        (1e9, Health.OFFLINE),
    ],
)
def test_a_node_is_suspect_after_two_missed_heartbeats_and_offline_after_four(
    age_s: float | None, health: Health
) -> None:
    assert by_heartbeat(age_s, interval_s=10) == health


def test_a_node_is_paused_after_three_failures() -> None:
    statistics = NodeStatistics()
    statistics.failed(now=100.0)
    statistics.failed(now=100.0)
    assert statistics.may_be_asked(now=100.0)

    statistics.failed(now=100.0)

    assert not statistics.may_be_asked(now=100.5)
    assert statistics.may_be_asked(now=101.0)


def test_each_further_failure_doubles_the_pause_up_to_a_limit() -> None:
    statistics = NodeStatistics()
    for _ in range(3):
        statistics.failed(now=0.0)
    statistics.failed(now=1.0)
    assert statistics.backoff_until == 1.0 + 2.0
    for _ in range(20):
        now = statistics.backoff_until
        statistics.failed(now=now)
    assert statistics.backoff_until == now + MAX_BACKOFF_S


def test_requests_that_waited_for_a_hung_node_together_do_not_double_its_pause() -> None:
    statistics = NodeStatistics()
    for _ in range(170):
        statistics.failed(now=0.0)
    assert statistics.may_be_asked(now=1.0)


def test_a_success_resets_the_failures() -> None:
    statistics = NodeStatistics()
    for _ in range(9):
        statistics.failed(now=0.0)
    statistics.succeeded(0.01)
    assert statistics.failures == 0
    assert statistics.may_be_asked(now=0.0)


def test_latency_is_smoothed() -> None:
    statistics = NodeStatistics()
    statistics.succeeded(0.1)
    assert statistics.latency_s == pytest.approx(0.1)
    statistics.succeeded(0.2)
    assert statistics.latency_s == pytest.approx(0.12)


def checks(*, bad: int, right: int) -> IntegrityChecks:
    """Return checks of different blobs, all at the same moment."""
    made = IntegrityChecks()
    for number in range(bad + right):
        made.add(b"%d" % number, is_right=number >= bad, now=0.0)
    return made


@pytest.mark.parametrize(
    ("bad", "right", "is_own", "is_corrupt"),
    [
        (19, 0, True, False),
        (1, 19, True, True),
        (1, 20, True, False),
        (2, 0, False, False),
        (3, 0, False, True),
        (3, 597, False, True),
        (3, 598, False, False),
    ],
)
def test_a_node_is_corrupt_if_a_share_of_its_blobs_was_wrong(
    *, bad: int, right: int, is_own: bool, is_corrupt: bool
) -> None:
    assert checks(bad=bad, right=right).is_corrupt(0.0, is_own=is_own) is is_corrupt


def test_one_blob_counts_once_and_for_an_hour() -> None:
    made = IntegrityChecks()
    for _ in range(5):
        made.add(b"one", is_right=False, now=0.0)
        made.add(b"one", is_right=True, now=0.0)
    assert made.count(CHECKS_S) == (1, 1)
    assert made.count(CHECKS_S + 1) == (0, 0)
