"""What the three roles of a tenant can reach, as the server's administrator sees it."""

from sqlgateway.databases.tenant_databases import TEMPLATE
from tests.sqlgateway.support import Caller, as_provisioner


def test_a_tenants_roles_can_enter_no_other_database(alice: Caller, charlie: Caller) -> None:
    others = ("postgres", "template1", TEMPLATE, charlie.database.dbname)
    for role in alice.database.roles.values():
        for database in others:
            ((may,),) = as_provisioner(
                "SELECT has_database_privilege(%s, %s, 'CONNECT')", [role, database]
            )
            assert may is False, database


def test_a_tenants_roles_are_members_of_nothing_and_own_no_database(alice: Caller) -> None:
    names = list(alice.database.roles.values())

    attributes = as_provisioner(
        "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolinherit "
        "FROM pg_roles WHERE rolname = ANY(%s)",
        [names],
    )
    memberships = as_provisioner(
        "SELECT 1 FROM pg_auth_members WHERE member::regrole::text = ANY(%s)", [names]
    )
    owned = as_provisioner(
        "SELECT 1 FROM pg_database WHERE pg_get_userbyid(datdba) = ANY(%s)", [names]
    )

    assert attributes == [(False,) * 6] * 3
    assert memberships == owned == []
