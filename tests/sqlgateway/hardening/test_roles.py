"""What each of the three roles may do."""

import pytest
from django.core.management import call_command

from common.permissions import highest_role
from tests.sqlgateway.support import Caller

pytestmark = pytest.mark.provisions


@pytest.fixture
def table(alice: Caller) -> Caller:
    """Return Alice with a table that has a sequence."""
    made = alice.sql("CREATE TABLE t (id serial PRIMARY KEY, name text)")
    assert made.status == 200
    return alice


def test_an_admin_makes_and_unmakes(table: Caller) -> None:
    for text in (
        "INSERT INTO t (name) VALUES ('a')",
        "ALTER TABLE t ADD COLUMN more int",
        "CREATE INDEX ON t (name)",
        "CREATE SCHEMA s",
        "CREATE TABLE s.u (id int)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION g() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
        (
            "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW "
            "EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        ),
        "CREATE TEMP TABLE x (id int)",
        "CREATE TYPE mood AS ENUM ('sad')",
        "TRUNCATE t",
        "DROP SCHEMA s CASCADE",
        "DROP TABLE t CASCADE",
    ):
        answer = table.sql(text)
        assert answer.status == 200, (text, answer.body)


def test_an_operator_changes_rows_and_makes_nothing(table: Caller) -> None:
    bob = table.be("operator")

    for text in (
        "INSERT INTO t (name) VALUES ('a') RETURNING id",
        "UPDATE t SET name = 'b'",
        "SELECT * FROM t FOR UPDATE",
        "DELETE FROM t",
        "CREATE TEMP TABLE x (id int)",
    ):
        assert bob.sql(text).status == 200, text
    for text in (
        "CREATE TABLE u (id int)",
        "ALTER TABLE t ADD COLUMN more int",
        "CREATE INDEX ON t (name)",
        "DROP TABLE t",
        "TRUNCATE t",
        "CREATE SCHEMA s",
        "CREATE TYPE mood AS ENUM ('sad')",
    ):
        assert bob.sql(text).status in {400, 403}, text
    assert bob.sql("CREATE TABLE u (id int)").body["sqlstate"] == "42501"


def test_a_reader_reads(table: Caller) -> None:
    table.sql("INSERT INTO t (name) VALUES ('a')")
    bob = table.be("reader")

    assert bob.sql("SELECT name FROM t").rows == [{"name": "a"}]
    assert bob.sql("INSERT INTO t (name) VALUES ('b')").body["sqlstate"] == "25006"
    assert bob.sql("BEGIN READ WRITE; DELETE FROM t; COMMIT").body["sqlstate"] == "42501"


def test_what_an_admin_makes_later_is_there_for_the_others_in_every_schema(table: Caller) -> None:
    table.sql("CREATE SCHEMA s; CREATE TABLE s.u (id serial); CREATE VIEW s.v AS SELECT 1 AS one")

    assert table.be("operator").sql("INSERT INTO s.u DEFAULT VALUES").status == 200
    assert table.be("reader").value("SELECT count(*) FROM s.u") == 1
    assert table.be("reader").value("SELECT one FROM s.v") == 1


def test_an_admin_may_keep_something_from_readers(table: Caller) -> None:
    assert table.sql("REVOKE ALL ON t FROM PUBLIC").status == 200

    assert table.be("reader").sql("SELECT * FROM t").status == 403
    assert table.be("operator").sql("SELECT * FROM t").status == 200


def test_the_strongest_role_counts(table: Caller) -> None:
    assert highest_role(("reader", "admin")) == "admin"
    assert table.be("nonesuch").sql("SELECT 1").status == 403


def test_each_role_logs_in_as_itself(table: Caller) -> None:
    database = table.database
    for role, user in database.roles.items():
        someone = table.be(role)
        assert someone.value("SELECT current_user") == user
        assert someone.value("SELECT session_user") == user


WRITER = (
    "CREATE FUNCTION w() RETURNS int LANGUAGE sql SECURITY DEFINER "
    "AS $$ INSERT INTO t (name) VALUES ('w') RETURNING 1 $$"
)


def test_a_reader_calls_no_function_of_an_admin_until_it_is_granted(table: Caller) -> None:
    assert table.sql(f"CREATE SCHEMA s; {WRITER}").status == 200
    assert table.sql("CREATE FUNCTION s.one() RETURNS int RETURN 1").status == 200
    assert table.sql("CREATE VIEW v AS SELECT s.one() AS one").status == 200
    bob = table.be("reader")

    for text in ("SELECT w()", "SELECT s.one()", "SELECT one FROM v"):
        assert bob.sql(f"BEGIN READ WRITE; {text}; COMMIT").body["sqlstate"] == "42501", text
        assert table.sql(text).status == 200, text
    assert table.value("SELECT count(*) FROM t") == 1

    assert table.sql("GRANT EXECUTE ON FUNCTION s.one() TO PUBLIC").status == 200
    assert bob.value("SELECT one FROM v") == 1


def test_an_operator_calls_the_functions_that_its_writes_need(table: Caller) -> None:
    table.sql("CREATE FUNCTION word() RETURNS text RETURN 'a'")
    table.sql("CREATE TABLE u (w text DEFAULT word())")

    assert table.be("operator").sql("INSERT INTO u DEFAULT VALUES").status == 200


def test_functions_of_a_database_made_before_stay_as_they_were(table: Caller) -> None:
    table.sql("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC")

    call_command("hardendatabases", "--all")

    table.sql("CREATE FUNCTION one() RETURNS int RETURN 1")
    assert table.be("reader").value("SELECT one()") == 1
