"""Two environments see nothing of each other."""

import pytest

from environments.models import Environment
from sqlgateway.models import Database
from tests.sqlgateway import support
from tests.sqlgateway.support import Caller

pytestmark = pytest.mark.provisions


def test_environments_and_organizations_have_databases_of_their_own(
    alice: Caller, charlie: Caller
) -> None:
    organization = Environment.objects.get(pk=alice.scope.environment_pk).organization
    sandbox = support.caller(organization, "sandbox")

    alice.sql("CREATE TABLE t (id int); INSERT INTO t VALUES (1)")

    assert alice.value("SELECT id FROM t") == 1
    for someone in (sandbox, charlie):
        assert someone.sql("SELECT * FROM t").body["sqlstate"] == "42P01"
        someone.sql("CREATE TABLE t (id int)")
        assert someone.value("SELECT count(*) FROM t") == 0
    assert len({one.database.dbname for one in (alice, sandbox, charlie)}) == 3


def test_names_tell_nothing_about_the_tenant(alice: Caller, charlie: Caller) -> None:
    alice.value("SELECT 1")
    charlie.value("SELECT 1")
    names: list[str] = []
    for database in Database.objects.all():
        names += [database.dbname, *database.roles.values()]

    assert len(set(names)) == 8
    assert {name[:3] for name in names} == {"zd_", "zr_"}
    assert {len(name) for name in names} == {23}


def test_no_connection_is_shared(alice: Caller, charlie: Caller) -> None:
    for _ in range(3):
        assert alice.value("SELECT current_database()") == alice.database.dbname
        assert charlie.value("SELECT current_database()") == charlie.database.dbname


def test_a_tenant_sees_no_other_databases_sizes_or_objects(alice: Caller, charlie: Caller) -> None:
    charlie.sql("CREATE TABLE secret_of_charlie (id int)")

    for text in (
        "SELECT relname FROM pg_class",
        "SELECT table_name FROM information_schema.tables",
        "SELECT * FROM information_schema.applicable_roles",
        "SELECT * FROM information_schema.enabled_roles",
    ):
        said = str(alice.sql(text).body)
        assert "secret_of_charlie" not in said
        assert charlie.database.admin_role not in said
    other = charlie.database.dbname
    assert alice.sql("SELECT pg_database_size($1)", [other]).status == 403
