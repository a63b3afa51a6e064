"""Roles that a killed copy leaves behind are dropped when they have expired."""

import psycopg
import pytest

from sqlgateway.provisioning.clusters import address_of, administer
from sqlgateway.provisioning.database_copy import temporary_roles
from sqlgateway.provisioning.database_copy.reading import reading_role
from tests.sqlgateway.support import Caller

pytestmark = pytest.mark.provisions


def test_a_reading_role_of_a_killed_copy_is_dropped_after_it_expired(alice: Caller) -> None:
    # The reader gets a privilege that the admin has revoked from itself.
    alice.value("CREATE TABLE t (); REVOKE ALL ON t FROM CURRENT_USER; SELECT 1")
    address, database = address_of(alice.database.cluster), alice.database
    killed, running = reading_role(address, database), reading_role(address, database)
    role = killed.__enter__().user
    with running as session, administer(address) as connection:
        connection.execute(f"ALTER ROLE {role} VALID UNTIL '2026-01-01'".encode())
        assert temporary_roles.drop_expired() == 1
        rows = connection.execute(
            "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [[role, session.user]]
        )
        assert rows.fetchall() == [(session.user,)]
    assert alice.value("SELECT 2") == 2
    with pytest.raises(psycopg.errors.UndefinedObject):
        killed.__exit__(None, None, None)
