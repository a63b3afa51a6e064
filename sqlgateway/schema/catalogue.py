"""The contents of a database, from PostgreSQL's catalogues: for consoles and code generators.

Each query returns one JSON object in a row. ``$1`` is a schema's name, or null for all schemas. The
queries run as the caller's role, and return only objects on which it has privileges. Owners, roles,
system schemas, and objects of extensions are left out.
"""

from typing import Any, Final

import orjson

from common.errors import PlatformError
from common.permissions import Role
from common.principals import Scope
from common.scoping import within
from sqlgateway.models import Database
from sqlgateway.run import gateway
from sqlgateway.run.requests import ARRAYS, SqlRequest, SqlText

# With this, unqualified names and operators in the queries are PostgreSQL's own, even if the tenant
# has created others of the same name.
SEARCH_PATH: Final = "SET LOCAL search_path TO pg_catalog, pg_temp"
SCHEMAS: Final = """
SELECT json_build_object('name', n.nspname, 'comment', obj_description(n.oid, 'pg_namespace'))
FROM pg_namespace AS n
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND ($1::text IS NULL OR n.nspname = $1) AND has_schema_privilege(n.oid, 'USAGE')
ORDER BY n.nspname
"""
# What a domain says of its values, with the domains under it.
DOMAIN: Final = """
    WITH RECURSIVE chain(oid, base, is_required, level) AS (
      SELECT t.oid, t.typbasetype, t.typnotnull, 0
      UNION ALL
      SELECT b.oid, b.typbasetype, b.typnotnull, level + 1
      FROM chain JOIN pg_type AS b ON b.oid = chain.base)"""
IS_REQUIRED: Final = "(<domain> SELECT bool_or(is_required) FROM chain)"
CONSTRAINTS: Final = """(<domain>
      SELECT coalesce(json_agg(json_build_object(
        'domain', format_type(chain.oid, NULL), 'name', k.conname,
        'definition', pg_get_constraintdef(k.oid)) ORDER BY level DESC, k.conname), '[]')
      FROM chain JOIN pg_constraint AS k ON k.contypid = chain.oid AND k.contype = 'c')"""
DEFAULT: Final = "pg_get_expr(t.typdefaultbin, 'pg_type'::regclass)"


def _of_domains(query: str) -> str:
    """Return a query with what domains say. ``t`` is the row of pg_type."""
    query = query.replace("<required>", IS_REQUIRED).replace("<constraints>", CONSTRAINTS)
    return query.replace("<domain>", DOMAIN).replace("<default>", DEFAULT)


# A column is visible if a privilege on the table or the column permits reading or writing it.
TABLES: Final = _of_domains("""
SELECT json_build_object(
  'schema', n.nspname, 'name', c.relname,
  'kind', CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned_table'
    WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' ELSE 'foreign_table' END,
  'comment', obj_description(c.oid, 'pg_class'),
  'estimated_rows', CASE WHEN c.reltuples < 0 THEN NULL ELSE c.reltuples::bigint END,
  'size_bytes', coalesce(pg_total_relation_size(c.oid), 0),
  'definition', CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END,
  'columns', (
    SELECT coalesce(json_agg(json_build_object(
      'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
      'is_nullable', NOT (a.attnotnull OR t.typtype = 'd' AND <required>),
      'default', CASE WHEN a.attgenerated = '' AND a.attidentity = ''
        THEN coalesce(pg_get_expr(d.adbin, d.adrelid), <default>) END,
      'domain_constraints', CASE WHEN t.typtype = 'd' THEN <constraints> ELSE '[]'::json END,
      'generated', CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid) END,
      'identity', CASE a.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by_default' END,
      'comment', col_description(c.oid, a.attnum)) ORDER BY a.attnum), '[]')
    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      AND has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES')),
  'constraints', (
    SELECT coalesce(json_agg(json_build_object(
      'name', k.conname,
      'kind', CASE k.contype WHEN 'p' THEN 'primary_key' WHEN 'u' THEN 'unique'
        WHEN 'f' THEN 'foreign_key' WHEN 'c' THEN 'check' ELSE 'exclusion' END,
      'definition', pg_get_constraintdef(k.oid),
      'columns', (
        SELECT coalesce(json_agg(a.attname ORDER BY u.place), '[]')
        FROM unnest(k.conkey) WITH ORDINALITY AS u (number, place)
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = u.number),
      'references', CASE WHEN k.contype = 'f' THEN (
        SELECT json_build_object('schema', fn.nspname, 'table', f.relname, 'columns', (
          SELECT json_agg(a.attname ORDER BY u.place)
          FROM unnest(k.confkey) WITH ORDINALITY AS u (number, place)
          JOIN pg_attribute AS a ON a.attrelid = f.oid AND a.attnum = u.number))
        FROM pg_class AS f JOIN pg_namespace AS fn ON fn.oid = f.relnamespace
        WHERE f.oid = k.confrelid) END) ORDER BY k.conname), '[]')
    FROM pg_constraint AS k
    WHERE k.conrelid = c.oid AND k.contype IN ('p', 'u', 'f', 'c', 'x')),
  'indexes', (
    SELECT coalesce(json_agg(json_build_object(
      'name', i.relname, 'definition', pg_get_indexdef(x.indexrelid),
      'is_unique', x.indisunique, 'is_primary', x.indisprimary, 'is_valid', x.indisvalid,
      'size_bytes', coalesce(pg_relation_size(i.oid), 0)) ORDER BY i.relname), '[]')
    FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid
    WHERE x.indrelid = c.oid))
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND ($1::text IS NULL OR n.nspname = $1) AND has_schema_privilege(n.oid, 'USAGE')
  AND (has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES')
    OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
  AND NOT EXISTS (
    SELECT FROM pg_depend AS e
    WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')
ORDER BY n.nspname, c.relname
""")
FUNCTIONS: Final = """
SELECT json_build_object(
  'schema', n.nspname, 'name', p.proname,
  'kind', CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate'
    WHEN 'w' THEN 'window' ELSE 'function' END,
  'arguments', pg_get_function_arguments(p.oid), 'returns', pg_get_function_result(p.oid),
  'language', l.lanname, 'is_security_definer', p.prosecdef,
  'comment', obj_description(p.oid, 'pg_proc'))
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
JOIN pg_language AS l ON l.oid = p.prolang
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND ($1::text IS NULL OR n.nspname = $1) AND has_schema_privilege(n.oid, 'USAGE')
  AND has_function_privilege(p.oid, 'EXECUTE')
  AND NOT EXISTS (
    SELECT FROM pg_depend AS e
    WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
ORDER BY n.nspname, p.proname, p.oid
"""
# Without the composite types of tables.
TYPES: Final = _of_domains("""
SELECT json_build_object(
  'schema', n.nspname, 'name', t.typname,
  'kind', CASE t.typtype WHEN 'e' THEN 'enum' WHEN 'd' THEN 'domain' WHEN 'r' THEN 'range'
    ELSE 'composite' END,
  'labels', CASE WHEN t.typtype = 'e' THEN (
    SELECT json_agg(v.enumlabel ORDER BY v.enumsortorder)
    FROM pg_enum AS v WHERE v.enumtypid = t.oid) END,
  'base_type', CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) END,
  'default', CASE WHEN t.typtype = 'd' THEN <default> END,
  'is_nullable', CASE WHEN t.typtype = 'd' THEN NOT <required> END,
  'constraints', CASE WHEN t.typtype = 'd' THEN <constraints> END,
  'columns', CASE WHEN t.typtype = 'c' THEN (
    SELECT json_agg(json_build_object(
      'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) ORDER BY a.attnum)
    FROM pg_attribute AS a
    WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) END,
  'comment', obj_description(t.oid, 'pg_type'))
FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
LEFT JOIN pg_class AS c ON c.oid = t.typrelid
WHERE t.typtype IN ('e', 'd', 'r', 'c') AND (t.typtype <> 'c' OR c.relkind = 'c')
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND ($1::text IS NULL OR n.nspname = $1) AND has_schema_privilege(n.oid, 'USAGE')
  AND has_type_privilege(t.oid, 'USAGE')
  AND NOT EXISTS (
    SELECT FROM pg_depend AS e
    WHERE e.classid = 'pg_type'::regclass AND e.objid = t.oid AND e.deptype = 'e')
ORDER BY n.nspname, t.typname
""")
EXTENSIONS: Final = """
SELECT json_build_object('name', e.extname, 'version', e.extversion, 'schema', n.nspname)
FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname <> 'plpgsql' AND ($1::text IS NULL OR n.nspname = $1)
ORDER BY e.extname
"""
DATABASE: Final = """
SELECT json_build_object(
  'size_bytes', pg_database_size(current_database()),
  'server_version', current_setting('server_version'))
"""
TABLE_COUNT_AND_SIZE: Final = """
SELECT count(*), pg_database_size(current_database())
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""
LIST_QUERIES: Final = {
    "schemas": SCHEMAS,
    "tables": TABLES,
    "functions": FUNCTIONS,
    "types": TYPES,
    "extensions": EXTENSIONS,
}


def read_schema(scope: Scope, role: Role, *, schema: str | None, request_id: str) -> dict[str, Any]:
    """Return the objects that the role may see in the database, or in one of its schemas.

    All lists are from one snapshot. ``truncated`` is True if a list exceeds the limits of a
    request; a request for a single schema may return more.
    Raises the errors of ``POST /v1/sql``.
    """
    value = None if schema is None else schema.encode()
    texts = (
        SqlText(SEARCH_PATH, []),
        SqlText(DATABASE, [], ARRAYS),
        *(SqlText(query, [value], ARRAYS) for query in LIST_QUERIES.values()),
    )
    request = SqlRequest(texts, is_batch=True, isolation="repeatable read")
    answer = orjson.loads(gateway.look(scope, role, request, request_id=request_id))
    _, database, *lists = ([row[0] for row in result["rows"]] for result in answer["results"])
    return {
        "database": database[0],
        **dict(zip(LIST_QUERIES, lists, strict=True)),
        "truncated": answer["truncated"],
    }


def contents_of(scope: Scope, *, request_id: str) -> dict[str, int | None]:
    """Return ``tables`` and ``database_bytes``; ``tables`` is None if the database does not answer.

    Does not create a database if the environment has none.
    """
    with within(scope):
        database: Database | None = Database.objects.first()
    if database is None:
        return {"tables": 0, "database_bytes": 0}
    try:
        tables, size = _count_and_size(scope, request_id)
    except PlatformError:
        return {"tables": None, "database_bytes": database.size_bytes}
    return {"tables": tables, "database_bytes": size}


def _count_and_size(scope: Scope, request_id: str) -> tuple[int, int]:
    texts = (SqlText(SEARCH_PATH, []), SqlText(TABLE_COUNT_AND_SIZE, [], ARRAYS))
    request = SqlRequest(texts, is_batch=True)
    answer = orjson.loads(gateway.look(scope, "admin", request, request_id=request_id))
    ((tables, size),) = answer["results"][1]["rows"]
    return int(tables), int(size)
