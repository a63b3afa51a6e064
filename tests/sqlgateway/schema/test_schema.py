"""``GET /v1/sql/schema``: what a database holds, as the caller's role may see it."""

from collections.abc import Callable

from tests.cast import Caller

SignIn = Callable[[str], Caller]

OBJECTS = """
CREATE TYPE mood AS ENUM ('calm', 'cross');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b text);
CREATE TABLE owners (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL);
CREATE TABLE pets (
  tag text, number int, owner bigint NOT NULL REFERENCES owners (id) ON DELETE CASCADE,
  mood mood DEFAULT 'calm', legs positive, twice int GENERATED ALWAYS AS (number * 2) STORED,
  PRIMARY KEY (tag, number), UNIQUE (number, owner), CHECK (number < 100));
COMMENT ON TABLE pets IS 'Animals.';
CREATE INDEX pets_owner ON pets (owner);
CREATE VIEW cross_pets AS SELECT tag FROM pets WHERE mood = 'cross';
CREATE SCHEMA private;
CREATE TABLE private.diary (secret text);
CREATE FUNCTION double(n int DEFAULT 1) RETURNS int LANGUAGE sql AS 'SELECT n * 2'
"""


def sql(caller: Caller, query: str) -> None:
    answer = caller.post("/v1/sql", {"query": query})
    assert answer.status == 200, answer.body


def test_an_admin_sees_every_kind_of_object(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    sql(admin, OBJECTS)
    answer = admin.get("/v1/sql/schema")
    assert answer.status == 200
    schema = answer.body
    assert schema["truncated"] is False
    assert schema["database"]["size_bytes"] > 0
    assert [one["name"] for one in schema["schemas"]] == ["private", "public"]
    tables = {one["name"]: one for one in schema["tables"]}
    assert set(tables) == {"cross_pets", "diary", "owners", "pets"}
    pets = tables["pets"]
    assert (pets["kind"], pets["comment"], pets["estimated_rows"]) == ("table", "Animals.", None)
    columns = {one["name"]: one for one in pets["columns"]}
    assert list(columns) == ["tag", "number", "owner", "mood", "legs", "twice"]
    assert columns["mood"]["default"] == "'calm'::public.mood"
    assert columns["twice"]["generated"] == "(number * 2)"
    assert columns["owner"]["is_nullable"] is False
    keys = {one["name"]: one for one in pets["constraints"]}
    assert keys["pets_pkey"]["columns"] == ["tag", "number"]
    assert keys["pets_owner_fkey"]["references"] == {
        "schema": "public",
        "table": "owners",
        "columns": ["id"],
    }
    assert "pets_owner" in [one["name"] for one in pets["indexes"]]
    assert tables["owners"]["columns"][0]["identity"] == "always"
    assert "WHERE" in tables["cross_pets"]["definition"]
    assert [(one["name"], one["arguments"]) for one in schema["functions"]] == [
        ("double", "n integer DEFAULT 1")
    ]
    types = {one["name"]: one for one in schema["types"]}
    assert types["mood"]["labels"] == ["calm", "cross"]
    assert types["positive"]["base_type"] == "integer"
    assert types["pair"]["columns"][1] == {"name": "b", "type": "text"}


def test_a_column_has_what_its_domain_says_of_it(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    sql(
        admin,
        "CREATE DOMAIN kept AS int DEFAULT 5 CONSTRAINT above CHECK (VALUE > 0);"
        "CREATE DOMAIN small AS kept NOT NULL CONSTRAINT below CHECK (VALUE < 9);"
        "CREATE DOMAIN smaller AS small DEFAULT 2;"
        "CREATE TABLE k (a kept, b smaller, c small DEFAULT 7, d int,"
        " e small GENERATED ALWAYS AS (d) STORED)",
    )
    schema = admin.get("/v1/sql/schema").body
    (table,) = schema["tables"]
    columns = {one["name"]: one for one in table["columns"]}
    assert [one["default"] for one in columns.values()] == ["5", "2", "7", None, None]
    assert [one["is_nullable"] for one in columns.values()] == [True, False, False, True, False]
    above = {"domain": "public.kept", "name": "above", "definition": "CHECK ((VALUE > 0))"}
    definition = "CHECK (((VALUE)::integer < 9))"
    below = {"domain": "public.small", "name": "below", "definition": definition}
    assert columns["a"]["domain_constraints"] == [above]
    assert columns["b"]["domain_constraints"] == [above, below]
    assert columns["d"]["domain_constraints"] == []
    types = {one["name"]: one for one in schema["types"]}
    assert types["small"]["constraints"] == [above, below]
    assert (types["smaller"]["default"], types["smaller"]["is_nullable"]) == ("2", False)
    assert (types["kept"]["default"], types["kept"]["is_nullable"]) == ("5", True)


def test_one_schema_is_read_by_its_name(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    sql(admin, OBJECTS)
    schema = admin.get("/v1/sql/schema?schema=private").body
    assert [one["name"] for one in schema["tables"]] == ["diary"]
    assert schema["functions"] == schema["types"] == []
    assert admin.get("/v1/sql/schema?schema=none'--").body["schemas"] == []


def test_a_reader_sees_only_what_its_privileges_reach(signed_in_as: SignIn) -> None:
    admin, reader = signed_in_as("admin"), signed_in_as("reader")
    sql(admin, "CREATE TABLE seen (a int); CREATE TABLE hidden (a int)")
    grants = admin.get("/v1/sql/schema").body
    assert {one["name"] for one in grants["tables"]} == {"hidden", "seen"}
    sql(admin, "REVOKE ALL ON hidden FROM PUBLIC")
    assert [one["name"] for one in reader.get("/v1/sql/schema").body["tables"]] == ["seen"]


def test_operators_and_functions_of_a_tenant_do_not_answer_for_the_catalogues(
    signed_in_as: SignIn,
) -> None:
    admin = signed_in_as("admin")
    sql(
        admin,
        "CREATE TABLE kept (a int);"
        "CREATE FUNCTION public.obj_description(oid, text) RETURNS text"
        "  LANGUAGE sql AS $$ SELECT 'forged' $$;"
        "CREATE FUNCTION public.same(name, text) RETURNS bool LANGUAGE sql AS 'SELECT false';"
        "CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.same)",
    )
    (table,) = admin.get("/v1/sql/schema?schema=public").body["tables"]
    assert (table["name"], table["comment"]) == ("kept", None)
