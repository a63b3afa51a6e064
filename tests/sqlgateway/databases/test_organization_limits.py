"""Own limits of an organization that several writers set at the same moment."""

from collections.abc import Callable

import pytest

from common.errors import Conflict
from sqlgateway.databases.organization_limits import LIMITS, Changes, own_of, set_own
from sqlgateway.models import OrganizationQuota
from tests.parallel import at_once
from tests.sqlgateway.support import Caller

# As many writers as there are limits, each of another one.
VALUES = {limit.name: 1_000_000 + place for place, limit in enumerate(LIMITS)}


def setting(someone: Caller, name: str, value: int) -> Callable[[], Changes]:
    """Return a writer of one limit."""
    return lambda: set_own(someone.scope.organization_id, {name: value})


@pytest.mark.parametrize("has_row", [False, True])
def test_writers_of_different_limits_lose_nothing(committed: Caller, has_row: bool) -> None:
    if has_row:
        OrganizationQuota.objects.create(organization_id=committed.scope.organization_id)
    changes = at_once(*(setting(committed, name, value) for name, value in VALUES.items()))

    row = OrganizationQuota.objects.filter(organization_id=committed.scope.organization_id).get()
    assert own_of(row) == VALUES
    assert {name for change in changes for name in change} == set(VALUES)


def test_of_writers_of_one_limit_each_says_what_it_found(committed: Caller) -> None:
    values = range(1_000_000, 1_000_006)
    changes = at_once(*(setting(committed, "max_rows", value) for value in values))

    found = {change["max_rows"]["from"] for change in changes}
    last = (
        OrganizationQuota.objects.filter(organization_id=committed.scope.organization_id)
        .get()
        .max_rows
    )
    # A chain: every value but the last was found by the next writer.
    assert found == {None, *values} - {last}


def test_of_two_that_decided_upon_the_same_limits_one_is_told(committed: Caller) -> None:
    seen = own_of(None)

    def decide(value: int) -> bool:
        try:
            set_own(committed.scope.organization_id, {"max_rows": value}, seen=seen)
        except Conflict:
            return False
        return True

    outcomes = at_once(*(lambda value=value: decide(value) for value in (1_000_000, 2_000_000)))

    assert sorted(outcomes) == [False, True]
