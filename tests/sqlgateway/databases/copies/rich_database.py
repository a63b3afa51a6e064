"""A database with everything that a copy must keep, and the check of a copy."""

from tests.sqlgateway.support import Caller

# What a copy must keep, beside rows: sequences, policies, and what was closed to others.
RICH = """
        CREATE TABLE items (
            id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "Näme" text, tags int[]
        );
        INSERT INTO items ("Näme", tags)
            SELECT 'item ' || g, ARRAY[g, NULL] FROM generate_series(1, 50) g;
        CREATE TABLE salaries (who text, amount numeric);
        INSERT INTO salaries VALUES ('alice', 1), ('bob', 2);
        REVOKE ALL ON salaries FROM PUBLIC;
        GRANT SELECT (who) ON salaries TO PUBLIC;
        ALTER TABLE salaries ENABLE ROW LEVEL SECURITY;
        ALTER TABLE salaries FORCE ROW LEVEL SECURITY;
        CREATE TABLE hidden AS SELECT 1 AS id;
        CREATE VIEW names AS SELECT "Näme" FROM items;
        CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM items;
        CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT n * 2';
        CREATE EXTENSION hstore;
        CREATE SCHEMA workshop;
"""


def furnish(someone: Caller) -> None:
    """Fill an environment's database, also with a table of the operator's own."""
    operator = someone.database.operator_role
    for role, text in (
        ("admin", RICH),
        ("admin", f"GRANT CREATE, USAGE ON SCHEMA workshop TO {operator}"),
        ("admin", f"REVOKE ALL ON hidden FROM CURRENT_USER, PUBLIC, {operator}"),
        ("operator", "CREATE TABLE workshop.own (id int)"),
    ):
        answer = someone.be(role).sql(text)
        assert answer.status == 200, answer.body


def check_copy(someone: Caller) -> None:
    """Check that an environment holds what ``furnish`` made, and that closed stayed closed."""
    operator, reader = someone.be("operator"), someone.be("reader")
    assert someone.value("SELECT count(*) FROM items") == 50
    inserted = "INSERT INTO items (\"Näme\") VALUES ('new') RETURNING id"
    assert operator.value(inserted) == 51
    assert reader.value('SELECT "Näme" FROM names LIMIT 1') == "item 1"
    assert reader.value("SELECT n FROM counted") == 50
    assert reader.sql("SELECT amount FROM salaries").body["sqlstate"] == "42501"
    assert reader.sql("SELECT who FROM salaries").rows == []
    assert someone.sql("SELECT id FROM hidden").body["sqlstate"] == "42501"
    # What an operator owns is not the admin's: a function of the former must not run as the latter.
    owner = "SELECT relowner::regrole::text FROM pg_class WHERE relname = 'own'"
    assert someone.value(owner) == someone.database.operator_role
    # The defaults for what is created next.
    someone.sql("CREATE TABLE later (id int)")
    assert operator.sql("INSERT INTO later VALUES (1)").status == 200
    assert reader.value("SELECT id FROM later") == 1
