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
# Of one database, in which each has names of its own.
SCHEMAS: Final[dict[str, tuple[str, str, object]]] = {
    "generated column": (
        """CREATE TABLE generated (n text, s text GENERATED ALWAYS AS (slug(n)) STORED);
        INSERT INTO generated (n) VALUES ('N')""",
        "SELECT s FROM generated",
        "n-x",
    ),
    "check of a table": (
        """CREATE TABLE checked (n text CONSTRAINT of_table CHECK (slug(n) <> 'bad-x'));
        COMMENT ON CONSTRAINT of_table ON checked IS 'it''s kept';
        INSERT INTO checked VALUES ('N')""",
        """SELECT n || obj_description(oid) FROM checked, pg_constraint
            WHERE conname = 'of_table' AND convalidated""",
        "Nit's kept",
    ),
    "check of a domain": (
        """CREATE DOMAIN d AS text CONSTRAINT of_domain CHECK (slug(VALUE) <> 'bad-x');
        COMMENT ON CONSTRAINT of_domain ON DOMAIN d IS 'kept';
        CREATE TABLE domains (n d, m d[]); INSERT INTO domains VALUES ('N', '{M}')""",
        """SELECT n || m[1] || obj_description(oid) FROM domains, pg_constraint
            WHERE conname = 'of_domain'""",
        "NMkept",
    ),
    "key over a generated column": (
        """CREATE TABLE keyed (n text,
            s text GENERATED ALWAYS AS (slow_slug(n)) STORED PRIMARY KEY);
        CREATE TABLE referring (s text REFERENCES keyed); INSERT INTO keyed (n) VALUES ('N');
        INSERT INTO referring VALUES ('n-x')""",
        "SELECT s FROM keyed JOIN referring USING (s)",
        "n-x",
    ),
    "index over an expression": (
        """CREATE TABLE indexed (n text); CREATE UNIQUE INDEX of_slugs ON indexed (slow_slug(n))
            WHERE slow_slug(n) <> ''; INSERT INTO indexed VALUES ('N')""",
        """SELECT indisvalid::text || n FROM indexed, pg_index
            WHERE indexrelid = 'of_slugs'::regclass""",
        "trueN",
    ),
    "exclusion constraint": (
        """CREATE TABLE exclusive (n text, EXCLUDE USING btree (slow_slug(n) WITH =));
        INSERT INTO exclusive VALUES ('N')""",
        "SELECT n FROM exclusive",
        "N",
    ),
    "partitions by an expression": (
        """CREATE TABLE parted (n text) PARTITION BY LIST (slug(n));
        CREATE TABLE part PARTITION OF parted (CHECK (slow_slug(n) <> '')) FOR VALUES IN ('n-x');
        INSERT INTO parted VALUES ('N')""",
        "SELECT n FROM part",
        "N",
    ),
    "inherited check": (
        """CREATE TABLE heir_a (n text, CONSTRAINT inherited CHECK (slug(n) <> ''));
        CREATE TABLE heir_b (m int, CONSTRAINT inherited CHECK (slug(n) <> '')) INHERITS (heir_a);
        CREATE TABLE heir_z (k int) INHERITS (heir_b); INSERT INTO heir_z VALUES ('N', 1, 2)""",
        """SELECT string_agg(conrelid::regclass::text || coninhcount || conislocal, ' '
            ORDER BY conrelid) FROM pg_constraint WHERE conname = 'inherited'""",
        "heir_a0true heir_b1true heir_z1false",
    ),
    "materialized view": (
        """CREATE TABLE viewed (n text);
        CREATE MATERIALIZED VIEW slugs AS SELECT slow_slug(n) AS s FROM viewed WITH DATA;
        INSERT INTO viewed VALUES ('N')""",
        "SELECT s FROM slugs",
        "n-x",
    ),
    "materialized view of rows behind a policy": (
        """CREATE TABLE hidden (n text); INSERT INTO hidden VALUES ('N'), ('M');
        ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; ALTER TABLE hidden FORCE ROW LEVEL SECURITY;
        CREATE POLICY p ON hidden USING (n = 'N');
        CREATE MATERIALIZED VIEW seen AS SELECT string_agg(n, ',') AS s FROM hidden""",
        "SELECT s FROM seen",
        "N",
    ),
    "view, default, trigger, policy": (
        """CREATE TABLE used (n text DEFAULT slug('D'), m text);
        CREATE VIEW using_slug AS SELECT slug(n) AS s FROM used; INSERT INTO used DEFAULT VALUES;
        CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN NEW.m := slug(NEW.n); RETURN NEW; END $$;
        CREATE TRIGGER t BEFORE INSERT ON used FOR EACH ROW WHEN (slug(NEW.n) <> '')
            EXECUTE FUNCTION t();
        ALTER TABLE used ENABLE ROW LEVEL SECURITY;
        CREATE POLICY p ON used USING (slug(n) <> '')""",
        "INSERT INTO used VALUES ('N') RETURNING m || (SELECT min(s) FROM using_slug)",
        "n-xd-x-x",
    ),
    "check that reads a table whose rows come later": (
        """CREATE TABLE read_z (id int PRIMARY KEY); INSERT INTO read_z VALUES (1);
        CREATE FUNCTION is_known(i int) RETURNS bool LANGUAGE plpgsql
            AS $$ BEGIN RETURN EXISTS (SELECT FROM read_z WHERE id = i); END $$;
        CREATE TABLE read_a (i int CHECK (is_known(i))); INSERT INTO read_a VALUES (1)""",
        "SELECT i FROM read_a",
        1,
    ),
    "domain that reads a table whose rows come later": (
        """CREATE TABLE known_z (id int PRIMARY KEY); INSERT INTO known_z VALUES (1);
        CREATE FUNCTION is_of_domain(i int) RETURNS bool LANGUAGE plpgsql
            AS $$ BEGIN RETURN EXISTS (SELECT FROM known_z WHERE id = i); END $$;
        CREATE DOMAIN known AS int CHECK (is_of_domain(VALUE));
        CREATE TABLE known_a (i known); INSERT INTO known_a VALUES (1)""",
        "SELECT i FROM known_a",
        1,
    ),
    "times and intervals as text": (
        """CREATE FUNCTION words(t timestamptz, i interval) RETURNS text IMMUTABLE LANGUAGE sql
            AS $$ SELECT t::text || ' ' || i::text $$;
        CREATE TABLE timed (t timestamptz, i interval,
            w text GENERATED ALWAYS AS (words(t, i)) STORED);
        INSERT INTO timed VALUES ('2026-07-01 12:00+00', '1 day 2 hours')""",
        "SELECT w FROM timed",
        "2026-07-01 12:00:00+00 P1DT2H",
    ),
    "function with a path of its own": (
        """CREATE SCHEMA app; CREATE FUNCTION app.f() RETURNS int IMMUTABLE LANGUAGE sql
            AS 'SELECT 7'; CREATE FUNCTION g() RETURNS int IMMUTABLE LANGUAGE plpgsql
            SET search_path = app AS 'BEGIN RETURN f(); END';
        CREATE TABLE pathed (n int, s int GENERATED ALWAYS AS (n + g()) STORED);
        CREATE INDEX ON pathed ((n + g())); INSERT INTO pathed (n) VALUES (1)""",
        """SELECT s || array_to_string(array_agg(proname || proconfig::text ORDER BY proname), '')
            FROM pathed, pg_proc
            WHERE proconfig IS NOT NULL AND pronamespace >= 'public'::regnamespace
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
