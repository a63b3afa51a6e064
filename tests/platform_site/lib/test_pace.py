"""The slowest rate of a client that a thread waits for."""

import pytest

from platform_site.lib.web.pace import (
    PACES_KEY,
    RECEIVE_S,
    SLOWEST_BYTES_PER_S,
    Pace,
    leave_to_own_limit,
)


def test_a_client_that_sends_a_byte_now_and_then_is_too_slow() -> None:
    pace = Pace()
    pace.count(RECEIVE_S, 1)
    with pytest.raises(TimeoutError):
        pace.count(1.0, 1)


def test_a_client_that_sends_fast_enough_may_send_for_long() -> None:
    pace = Pace()
    for _ in range(1000):
        pace.count(1.0, SLOWEST_BYTES_PER_S)


def test_a_request_with_a_limit_of_its_own_has_no_other() -> None:
    pace = Pace()
    leave_to_own_limit({PACES_KEY: [pace]})
    leave_to_own_limit({})
    pace.count(10 * RECEIVE_S, 1)
