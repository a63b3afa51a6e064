"""The slowest rate of a client that a thread waits for."""

import pytest

from common.web.pace import (
    PACES_KEY,
    RECEIVE_S,
    SLOWEST_BYTES_PER_S,
    MinimumRate,
    disable_minimum_rate,
)


def test_a_client_that_sends_a_byte_now_and_then_is_too_slow() -> None:
    pace = MinimumRate()
    pace.count(RECEIVE_S, 1)
    with pytest.raises(TimeoutError):
        pace.count(1.0, 1)


def test_a_client_that_sends_fast_enough_may_send_for_long() -> None:
    pace = MinimumRate()
    for _ in range(1000):
        pace.count(1.0, SLOWEST_BYTES_PER_S)


def test_a_request_with_a_limit_of_its_own_has_no_other() -> None:
    pace = MinimumRate()
    disable_minimum_rate({PACES_KEY: [pace]})
    disable_minimum_rate({})
    pace.count(10 * RECEIVE_S, 1)
