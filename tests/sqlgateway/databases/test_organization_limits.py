"""Own limits of an organization: writers at the same moment, and the code of before."""

import json
from collections.abc import Callable
from importlib import import_module

import pytest
from django.db import connection

from common.errors import Conflict
from sqlgateway.clusters import organization_limits
from sqlgateway.clusters.organization_limits import (
    LIMITS,
    Changes,
    OwnLimit,
    Quota,
    own_of,
    quota_of,
    set_own,
)
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
        .limits["max_rows"]
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


def test_a_limit_that_the_release_before_did_not_have_is_stored(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    novel = OwnLimit("ZSQL_MAX_ROWS", lambda: 5, "Novel", "", "A limit without a column")
    novel.__set_name__(Quota, "novel")
    monkeypatch.setattr(organization_limits, "LIMITS", (*LIMITS, novel))
    changed = set_own(alice.scope.organization_id, {"novel": 3})
    assert changed == {"novel": {"from": None, "to": 3}}
    assert OrganizationQuota.objects.get().limits == {"novel": 3}


def test_the_upgrade_keeps_the_limits_that_were_set_before(alice: Caller) -> None:
    organization_id = alice.scope.organization_id
    with connection.cursor() as cursor:
        # As the code of before does, which knows no other column.
        cursor.execute(
            "INSERT INTO sqlgateway_organizationquota (organization_id, max_rows, environments)"
            " VALUES (%s, 7, 0)",
            [organization_id],
        )
        assert quota_of(organization_id).own == {}
        cursor.execute(import_module("sqlgateway.migrations.0003_limits_in_one_column").COPY)

    quota = quota_of(organization_id)
    assert quota.own == {"max_rows": 7, "environments": 0}
    assert (quota.max_rows, quota.environments, quota.max_bytes) == (7, 0, 8 * 2**20)


def test_the_code_of_before_finds_the_limits_that_are_set_now(alice: Caller) -> None:
    organization_id = alice.scope.organization_id
    set_own(organization_id, VALUES)
    set_own(organization_id, {"max_rows": None})

    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(q) FROM sqlgateway_organizationquota q")
        ((row,),) = cursor.fetchall()
    former = {name: VALUES[name] for name in organization_limits.FORMER_COLUMNS}
    assert {name: json.loads(row)[name] for name in former} == former | {"max_rows": None}


def test_a_limit_that_this_release_does_not_know_is_kept(alice: Caller) -> None:
    organization_id = alice.scope.organization_id
    OrganizationQuota.objects.create(organization_id=organization_id, limits={"of_later": 1})

    set_own(organization_id, {"max_rows": 7})

    assert OrganizationQuota.objects.filter(
        organization_id=alice.scope.organization_id
    ).get().limits == {
        "of_later": 1,
        "max_rows": 7,
    }
