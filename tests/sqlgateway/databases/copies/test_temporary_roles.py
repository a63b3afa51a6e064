"""Roles that a killed copy leaves behind are dropped when they have expired."""

import psycopg
import pytest
from psycopg import sql

from sqlgateway import names
from sqlgateway.clusters.servers import address_of, administer
from sqlgateway.databases import tenant_databases
from sqlgateway.databases.copies import temporary_roles
from sqlgateway.databases.copies.reading import reading_role
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


def test_a_role_of_a_closed_database_keeps_no_other_from_being_dropped(alice: Caller) -> None:
    alice.value("CREATE TABLE t (); SELECT 1")
    address, database = address_of(alice.database.cluster), alice.database
    # The first one by name.
    stuck, other = f"{names.ROLE_PREFIX}{'0' * names.LENGTH}", names.role_name()
    made = "CREATE ROLE {} VALID UNTIL '2026-01-01'"
    with administer(address) as connection:
        for role in (stuck, other):
            connection.execute(sql.SQL(made).format(sql.Identifier(role)))
        with administer(address, database.dbname) as inside:
            inside.execute(sql.SQL("GRANT SELECT ON public.t TO {}").format(sql.Identifier(stuck)))
        tenant_databases.set_open(database, is_open=False)
        assert temporary_roles.drop_expired() == 1

        tenant_databases.set_open(database, is_open=True)
        assert temporary_roles.drop_expired() == 1
