"""Schemas that work in a database, and that a dump by itself would not bring back.

Each has the statements that make it, a query, and what the query returns, also in a copy.
"""

from typing import Final

# slug() finds f_in() by the search_path only.
FUNCTIONS: Final = """
    CREATE FUNCTION f_in(t text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT lower(t) $$;
    CREATE FUNCTION slug(t text) RETURNS text IMMUTABLE LANGUAGE sql
        AS $$ SELECT f_in(t) || '-x' $$;
    CREATE FUNCTION slow_slug(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql
        AS $$ BEGIN RETURN slug(t); END $$;
"""
SCHEMAS: Final[dict[str, tuple[str, str, object]]] = {
    "generated column": (
        """CREATE TABLE a (n text, s text GENERATED ALWAYS AS (slug(n)) STORED);
        INSERT INTO a (n) VALUES ('N')""",
        "SELECT s FROM a",
        "n-x",
    ),
    "check of a table": (
        """CREATE TABLE a (n text CONSTRAINT c CHECK (slug(n) <> 'bad-x'));
        COMMENT ON CONSTRAINT c ON a IS 'it''s kept'; INSERT INTO a VALUES ('N')""",
        """SELECT n || obj_description(oid) FROM a, pg_constraint
            WHERE conname = 'c' AND convalidated""",
        "Nit's kept",
    ),
    "check of a domain": (
        """CREATE DOMAIN d AS text CONSTRAINT c CHECK (slug(VALUE) <> 'bad-x');
        COMMENT ON CONSTRAINT c ON DOMAIN d IS 'kept';
        CREATE TABLE a (n d, m d[]); INSERT INTO a VALUES ('N', '{M}')""",
        "SELECT n || m[1] || obj_description(oid) FROM a, pg_constraint WHERE conname = 'c'",
        "NMkept",
    ),
    "key over a generated column": (
        """CREATE TABLE a (n text, s text GENERATED ALWAYS AS (slow_slug(n)) STORED PRIMARY KEY);
        CREATE TABLE b (s text REFERENCES a); INSERT INTO a (n) VALUES ('N');
        INSERT INTO b VALUES ('n-x')""",
        "SELECT s FROM a JOIN b USING (s)",
        "n-x",
    ),
    "index over an expression": (
        """CREATE TABLE a (n text); CREATE UNIQUE INDEX i ON a (slow_slug(n))
            WHERE slow_slug(n) <> ''; INSERT INTO a VALUES ('N')""",
        "SELECT indisvalid::text || n FROM a, pg_index WHERE indexrelid = 'i'::regclass",
        "trueN",
    ),
    "exclusion constraint": (
        """CREATE TABLE a (n text, EXCLUDE USING btree (slow_slug(n) WITH =));
        INSERT INTO a VALUES ('N')""",
        "SELECT n FROM a",
        "N",
    ),
    "partitions by an expression": (
        """CREATE TABLE a (n text) PARTITION BY LIST (slug(n));
        CREATE TABLE a1 PARTITION OF a (CHECK (slow_slug(n) <> '')) FOR VALUES IN ('n-x');
        INSERT INTO a VALUES ('N')""",
        "SELECT n FROM a1",
        "N",
    ),
    "inherited check": (
        """CREATE TABLE a (n text, CONSTRAINT c CHECK (slug(n) <> ''));
        CREATE TABLE b (m int, CONSTRAINT c CHECK (slug(n) <> '')) INHERITS (a);
        CREATE TABLE z (k int) INHERITS (b); INSERT INTO z VALUES ('N', 1, 2)""",
        """SELECT string_agg(conrelid::regclass::text || coninhcount || conislocal, ' '
            ORDER BY conrelid) FROM pg_constraint WHERE conname = 'c'""",
        "a0true b1true z1false",
    ),
    "materialized view": (
        """CREATE TABLE a (n text); CREATE MATERIALIZED VIEW v AS SELECT slow_slug(n) AS s FROM a
            WITH DATA; INSERT INTO a VALUES ('N')""",
        "SELECT s FROM v",
        "n-x",
    ),
    "materialized view of rows behind a policy": (
        """CREATE TABLE a (n text); INSERT INTO a VALUES ('N'), ('M');
        ALTER TABLE a ENABLE ROW LEVEL SECURITY; ALTER TABLE a FORCE ROW LEVEL SECURITY;
        CREATE POLICY p ON a USING (n = 'N');
        CREATE MATERIALIZED VIEW v AS SELECT string_agg(n, ',') AS s FROM a""",
        "SELECT s FROM v",
        "N",
    ),
    "view, default, trigger, policy": (
        """CREATE TABLE a (n text DEFAULT slug('D'), m text);
        CREATE VIEW v AS SELECT slug(n) AS s FROM a; INSERT INTO a DEFAULT VALUES;
        CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN NEW.m := slug(NEW.n); RETURN NEW; END $$;
        CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW WHEN (slug(NEW.n) <> '')
            EXECUTE FUNCTION t();
        ALTER TABLE a ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON a USING (slug(n) <> '')""",
        "INSERT INTO a VALUES ('N') RETURNING m || (SELECT min(s) FROM v)",
        "n-xd-x-x",
    ),
    "check that reads a table whose rows come later": (
        """CREATE TABLE z (id int PRIMARY KEY); INSERT INTO z VALUES (1);
        CREATE FUNCTION is_known(i int) RETURNS bool LANGUAGE plpgsql
            AS $$ BEGIN RETURN EXISTS (SELECT FROM z WHERE id = i); END $$;
        CREATE TABLE a (i int CHECK (is_known(i))); INSERT INTO a VALUES (1)""",
        "SELECT i FROM a",
        1,
    ),
    "domain that reads a table whose rows come later": (
        """CREATE TABLE z (id int PRIMARY KEY); INSERT INTO z VALUES (1);
        CREATE FUNCTION is_known(i int) RETURNS bool LANGUAGE plpgsql
            AS $$ BEGIN RETURN EXISTS (SELECT FROM z WHERE id = i); END $$;
        CREATE DOMAIN known AS int CHECK (is_known(VALUE));
        CREATE TABLE a (i known); INSERT INTO a VALUES (1)""",
        "SELECT i FROM a",
        1,
    ),
    "times and intervals as text": (
        """CREATE FUNCTION words(t timestamptz, i interval) RETURNS text IMMUTABLE LANGUAGE sql
            AS $$ SELECT t::text || ' ' || i::text $$;
        CREATE TABLE a (t timestamptz, i interval,
            w text GENERATED ALWAYS AS (words(t, i)) STORED);
        INSERT INTO a VALUES ('2026-07-01 12:00+00', '1 day 2 hours')""",
        "SELECT w FROM a",
        "2026-07-01 12:00:00+00 P1DT2H",
    ),
    "function with a path of its own": (
        """CREATE SCHEMA app; CREATE FUNCTION app.f() RETURNS int IMMUTABLE LANGUAGE sql
            AS 'SELECT 7'; CREATE FUNCTION g() RETURNS int IMMUTABLE LANGUAGE plpgsql
            SET search_path = app AS 'BEGIN RETURN f(); END';
        CREATE TABLE a (n int, s int GENERATED ALWAYS AS (n + g()) STORED);
        CREATE INDEX i ON a ((n + g())); INSERT INTO a (n) VALUES (1)""",
        """SELECT s || array_to_string(array_agg(proname || proconfig::text ORDER BY proname), '')
            FROM a, pg_proc WHERE proconfig IS NOT NULL AND pronamespace >= 'public'::regnamespace
            GROUP BY s""",
        "8g{search_path=app}",
    ),
}

# Several of them at once, for the slower ways of copying.
_TABLES: Final = """
    CREATE TABLE z (id int PRIMARY KEY); INSERT INTO z VALUES (1);
    CREATE FUNCTION is_known(i int) RETURNS bool LANGUAGE plpgsql
        AS $$ BEGIN RETURN EXISTS (SELECT FROM z WHERE id = i); END $$;
    CREATE DOMAIN known AS int CHECK (is_known(VALUE));
    CREATE TABLE a (i known, j int CHECK (is_known(j)), n text,
        s text GENERATED ALWAYS AS (slug(n)) STORED);
    CREATE UNIQUE INDEX ON a (slow_slug(n));
    INSERT INTO a VALUES (1, 1, 'N')
"""
MANY: Final = FUNCTIONS + _TABLES
MANY_QUERY: Final = """SELECT s || count(*) AS v FROM a, pg_constraint
    WHERE contype = 'c' AND convalidated AND connamespace = 'public'::regnamespace GROUP BY s"""
MANY_VALUE: Final = "n-x2"
# Works, but its rows no longer pass their own CHECK.
EXPIRED: Final = """CREATE TABLE b (e timestamptz CONSTRAINT fresh CHECK (e > now()));
    INSERT INTO b VALUES (now() + interval '1 ms')"""
EXPIRED_COMPLAINT: Final = (
    'rows of table b: new row for relation "b" violates check constraint "fresh"'
)
