"""A limited pool: what one holder takes, the others can still get."""

import pytest

from common.fair_limiter import FairLimiter


def _taken(limiter: FairLimiter, key: str | None) -> int:
    count = 0
    while limiter.try_take(key):
        count += 1
    return count


@pytest.mark.parametrize(
    ("reserve", "expected"), [(1, [4, 2, 1, 1, 0]), (3, [2, 1, 1, 1, 1, 1, 1])]
)
def test_a_holder_takes_no_more_than_a_part_of_what_it_leaves_free(
    reserve: int, expected: list[int]
) -> None:
    limiter = FairLimiter(8, reserve=reserve)
    assert [_taken(limiter, f"holder {number}") for number in range(len(expected))] == expected
    assert limiter.taken == 8


def test_a_holder_without_a_share_takes_all_that_is_free() -> None:
    limiter = FairLimiter(8)
    limiter.try_take("somebody")
    assert _taken(limiter, None) == 7


def test_what_is_returned_can_be_taken_again() -> None:
    limiter = FairLimiter(100)
    assert limiter.try_take("one", 50)
    assert not limiter.try_take("one", 10)
    limiter.give_back("one", 50)
    assert limiter.taken == 0
    assert limiter.try_take("two", 50)


def test_a_first_amount_may_be_larger_than_a_share_but_not_than_the_rest() -> None:
    limiter = FairLimiter(10)
    assert limiter.try_take("one", 9)
    assert not limiter.try_take("two", 2)
    assert limiter.try_take("two", 1)


def test_a_place_is_taken_in_the_place_of_another() -> None:
    limiter = FairLimiter(4)
    assert _taken(limiter, "one") == 2
    limiter.try_take("two")
    limiter.give_back("one")
    limiter.take("one")
    assert limiter.taken == 3
