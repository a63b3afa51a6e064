"""A copy that grows beyond the quota is stopped while it is being made."""

from dataclasses import replace

import pytest
from pytest_django import Settings

from common.principals import Scope
from environments import environments
from sqlgateway.databases import tenant_databases
from sqlgateway.databases.copies import CopyFailed, programs
from sqlgateway.databases.copies.verified_copy import copy_database
from tests.sqlgateway.support import Caller

pytestmark = [pytest.mark.provisions, pytest.mark.slow]

# The view has one row; it is computed again by the copy.
GROWING = """
    CREATE FUNCTION many() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT 1::bigint';
    CREATE MATERIALIZED VIEW m AS SELECT many() AS x;
    CREATE OR REPLACE FUNCTION many() RETURNS SETOF bigint LANGUAGE sql
        AS 'SELECT generate_series(1, 1000000000000)';
"""


def test_a_clone_that_grows_beyond_the_quota_is_stopped(
    alice: Caller, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SQL = replace(settings.SQL, copy_timeout_s=20, disk_limit_bytes=2**20)
    monkeypatch.setattr(programs, "CHECK_S", 0.1)
    assert alice.sql(GROWING).status == 200
    made = environments.create(alice.scope.organization_id, "staging", copy_from="live")
    staging = Caller(Scope(alice.scope.organization_id, made.pk))
    tenant_databases.create(staging.database)

    with pytest.raises(CopyFailed, match="larger"):
        copy_database(alice.database, staging.database)

    tenant_databases.try_end_copy(staging.database)
