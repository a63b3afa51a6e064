"""Limits on guessing, as counters."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from common import rate_limits
from tests.parallel import at_once

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def tries(number: int, *, free: int = 5, ahead_s: float = 0) -> list[bool]:
    """Try so often at one moment; say which tries may go on."""
    moment = NOW + timedelta(seconds=ahead_s)
    return [rate_limits.attempt("login", "alice", free=free, now=moment) for _ in range(number)]


def test_a_free_try_that_read_its_clock_earlier_is_free_as_well() -> None:
    """Of two legitimate concurrent sign-ins, neither must wait for the other."""
    assert tries(1) == [True]
    assert tries(1, ahead_s=-0.01) == [True]


def test_after_the_free_tries_each_further_one_waits_twice_as_long() -> None:
    assert tries(6) == [True] * 5 + [False]
    assert tries(2, ahead_s=1.1) == [True, False]
    assert tries(2, ahead_s=2.2) == [False, False]
    assert tries(1, ahead_s=3.2) == [True]


def test_without_free_tries_the_second_waits() -> None:
    assert tries(2, free=1) == [True, False]
    assert tries(1, free=1, ahead_s=1.1) == [True]


def test_a_counter_unused_for_a_day_starts_again() -> None:
    assert tries(6) == [True] * 5 + [False]
    assert tries(4, ahead_s=86401) == [True] * 4


def test_a_full_window_reports_when_it_ends_and_the_next_one_is_empty() -> None:
    start = NOW.replace(minute=0, second=0, microsecond=0)
    take = partial(rate_limits.take, "mail", "alice", limit=2, window=timedelta(hours=1))
    assert [take(now=start) for _ in range(3)] == [0, 0, 3600]
    assert take(now=start + timedelta(minutes=59)) == 60
    assert take(now=start + timedelta(hours=1)) == 0
    assert rate_limits.take("mail", "bob", limit=2, window=timedelta(hours=1), now=start) == 0


@pytest.mark.django_db(transaction=True)
def test_parallel_uses_cannot_slip_past_a_window() -> None:
    take = partial(rate_limits.take, "mail", "alice", limit=3, window=timedelta(hours=1), now=NOW)
    taken = at_once(*[take] * 16)
    assert taken.count(0) == 3


@pytest.mark.django_db(transaction=True)
def test_uses_given_back_in_parallel_make_room_for_as_many() -> None:
    window = timedelta(hours=1)
    take = partial(rate_limits.take, "mail", "alice", limit=4, window=window, now=NOW)
    assert [take() for _ in range(5)].count(0) == 4
    at_once(*[partial(rate_limits.uncount, "mail", "alice", window=window, now=NOW)] * 3)
    assert at_once(*[take] * 8).count(0) == 3
