"""A limited pool: what one holder takes, the others can still get."""

import pytest

from platform_site.lib.shares import Shares


def _taken(shares: Shares, key: str | None) -> int:
    count = 0
    while shares.try_take(key):
        count += 1
    return count


@pytest.mark.parametrize(("spare", "expected"), [(1, [4, 2, 1, 1, 0]), (3, [2, 1, 1, 1, 1, 1, 1])])
def test_a_holder_takes_no_more_than_a_part_of_what_it_leaves_free(
    spare: int, expected: list[int]
) -> None:
    shares = Shares(8, spare=spare)
    assert [_taken(shares, f"holder {number}") for number in range(len(expected))] == expected
    assert shares.taken == 8


def test_a_holder_without_a_share_takes_all_that_is_free() -> None:
    shares = Shares(8)
    shares.try_take("somebody")
    assert _taken(shares, None) == 7


def test_what_is_returned_can_be_taken_again() -> None:
    shares = Shares(100)
    assert shares.try_take("one", 50)
    assert not shares.try_take("one", 10)
    shares.give_back("one", 50)
    assert shares.taken == 0
    assert shares.try_take("two", 50)


def test_a_first_amount_may_be_larger_than_a_share_but_not_than_the_rest() -> None:
    shares = Shares(10)
    assert shares.try_take("one", 9)
    assert not shares.try_take("two", 2)
    assert shares.try_take("two", 1)


def test_a_place_is_taken_in_the_place_of_another() -> None:
    shares = Shares(4)
    assert _taken(shares, "one") == 2
    shares.try_take("two")
    shares.give_back("one")
    shares.take("one")
    assert shares.taken == 3
