"""Limits on guessing, as counters."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import limits

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def tries(number: int, *, free: int = 5, ahead_s: float = 0) -> list[bool]:
    """Try so often at one moment; say which tries may go on."""
    moment = NOW + timedelta(seconds=ahead_s)
    return [limits.attempt("login", "alice", free=free, now=moment) for _ in range(number)]


def test_a_free_try_that_read_its_clock_earlier_is_free_as_well() -> None:
    """Two rightful sign-ins at once: neither is to wait for the other."""
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


def test_a_counter_that_rested_a_day_starts_anew() -> None:
    assert tries(6) == [True] * 5 + [False]
    assert tries(4, ahead_s=86401) == [True] * 4
