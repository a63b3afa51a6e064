"""Look up types in a tenant's database, as the tenant's role."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from psycopg import pq

from sqlgateway.formats.column_types import BUILTIN, ColumnType
from sqlgateway.pg.tenant_connection import TenantConnection

# Domains of domains and arrays of arrays; types below are shown as PostgreSQL's text.
MAX_DEPTH: Final = 32
# Names are qualified: the tenant controls its search_path. An array type is that of its element; a
# vector such as int2vector has elements, too, but another text. Each type leads to one other type
# at most.
TYPES: Final = """
WITH RECURSIVE reached AS (
    SELECT given.oid, 0 AS depth
    FROM pg_catalog.unnest('{%s}'::pg_catalog.oid[]) AS given(oid)
    UNION ALL
    SELECT CASE WHEN t.typbasetype OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
            THEN t.typbasetype ELSE t.typelem END,
        reached.depth OPERATOR(pg_catalog.+) 1
    FROM reached JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) reached.oid
    WHERE reached.depth OPERATOR(pg_catalog.<) %d
)
SELECT DISTINCT t.oid, t.typname, t.typbasetype,
    CASE WHEN e.typarray OPERATOR(pg_catalog.=) t.oid THEN e.oid END, e.typdelim
FROM reached JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) reached.oid
LEFT JOIN pg_catalog.pg_type AS e ON e.oid OPERATOR(pg_catalog.=) t.typelem
"""
MAX_COLUMN_TYPES: Final = 1000
ROWS: Final = frozenset({pq.ExecStatus.TUPLES_CHUNK, pq.ExecStatus.TUPLES_OK})


class _Row(NamedTuple):
    """A type of the catalogue. base: of a domain, or 0. element: of an array, or 0."""

    name: str
    base: int
    element: int
    delimiter: bytes


def look_up_types(connection: TenantConnection, oids: Iterable[int]) -> None:
    """Look up types, on a connection that runs no statement.

    A type that is not found, because its transaction was rolled back, remains unknown.
    Raises ConnectionLost.
    """
    if len(connection.column_types) > MAX_COLUMN_TYPES:
        connection.column_types.clear()
    wanted = sorted(oids)
    query = TYPES % (",".join(map(str, wanted)), MAX_DEPTH)
    connection.send_text(query.encode())
    found: dict[int, _Row] = {}
    while (result := connection.next_result()) is not None:
        if result.status not in ROWS:
            continue
        for row in range(result.ntuples):
            oid, name, base, element, delimiter = (
                result.get_value(row, column) or b"" for column in range(5)
            )
            shown = name.decode("utf-8", "replace")
            found[int(oid)] = _Row(shown, int(base), int(element or 0), delimiter)
    for known in found.keys() & set(wanted):
        connection.column_types[known] = _resolved(known, found)


def _resolved(oid: int, found: Mapping[int, _Row]) -> ColumnType:
    """Return a type. A domain has its own name, and the values of its base type."""
    row = found.get(oid)
    if oid in BUILTIN or row is None:
        return BUILTIN.get(oid, ColumnType("unknown"))
    if row.base:
        return _resolved(row.base, found)._replace(name=row.name)
    if not row.element:
        return ColumnType(row.name)
    element = _resolved(row.element, found)
    return ColumnType(f"{element.name}[]", element=element, delimiter=row.delimiter)
