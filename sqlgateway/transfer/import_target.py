"""The table of an import: its columns, and the sequences that its columns take values from.

The statements run as the caller's role, in the transaction of the import.
"""

from dataclasses import dataclass
from typing import Final

from psycopg import pq
from psycopg.pq.abc import PGresult

from sqlgateway.pg.tenant_connection import TenantConnection

# An identity or serial column of a partition or child table may take its values from the sequence
# of its parent's column. A sequence of a column that holds no integers is left alone.
COLUMNS: Final = b"""
WITH RECURSIVE tables(oid) AS (
    SELECT pg_catalog.to_regclass($1::text)::oid
    UNION
    SELECT inhparent FROM tables JOIN pg_catalog.pg_inherits ON inhrelid = tables.oid
)
SELECT a.attname, a.attgenerated <> ''::"char", (
    SELECT pg_catalog.format('%I.%I', n.nspname, s.relname)
    FROM tables JOIN pg_catalog.pg_attribute AS owner
        ON owner.attrelid = tables.oid AND owner.attname = a.attname
    JOIN pg_catalog.pg_depend AS d ON d.refobjid = owner.attrelid AND d.refobjsubid = owner.attnum
        AND d.classid = 'pg_catalog.pg_class'::regclass::oid
        AND d.refclassid = 'pg_catalog.pg_class'::regclass::oid
        AND d.deptype IN ('a'::"char", 'i'::"char")
    JOIN pg_catalog.pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'::"char"
    JOIN pg_catalog.pg_namespace AS n ON n.oid = s.relnamespace
    WHERE (
        WITH RECURSIVE bases AS (
            SELECT t.oid, t.typbasetype FROM pg_catalog.pg_type AS t WHERE t.oid = a.atttypid
            UNION ALL
            SELECT t.oid, t.typbasetype
            FROM bases JOIN pg_catalog.pg_type AS t ON t.oid = bases.typbasetype
        )
        SELECT oid FROM bases WHERE typbasetype = 0::oid
    ) IN ('int2'::regtype::oid, 'int4'::regtype::oid, 'int8'::regtype::oid, 'numeric'::regtype::oid)
    LIMIT 1
)
FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = pg_catalog.to_regclass($1::text)::oid AND a.attnum > 0::int2
    AND NOT a.attisdropped
ORDER BY a.attnum
"""
# What a role needs to move a sequence: to read the column and the sequence, and to use it.
MAY_MOVE: Final = b"""
SELECT pg_catalog.has_column_privilege($1::text, $2::text, 'SELECT')
    AND pg_catalog.has_sequence_privilege($3::text, 'SELECT')
    AND pg_catalog.has_sequence_privilege($3::text, 'USAGE, UPDATE')
"""
# setval() could move a sequence back that another session moves at the same time. Calls of
# nextval() cannot, and operators, who may not call setval(), may call it. A sequence that is behind
# by more than NEXTVALS is not passed by others between the two.
NEXTVALS: Final = 1_000_000
MOVE: Final = """
WITH present AS (
    SELECT last_value::numeric AS last, is_called, seqincrement::numeric AS step,
        CASE WHEN seqincrement > 0::int8
            THEN (SELECT pg_catalog.max({column})::numeric FROM {table})
            ELSE (SELECT pg_catalog.min({column})::numeric FROM {table})
        END AS outermost,
        CASE WHEN seqincrement > 0::int8 THEN seqmax ELSE seqmin END::numeric AS bound
    FROM {sequence}, pg_catalog.pg_sequence WHERE seqrelid = $1::text::regclass::oid
), counted AS (
    SELECT CASE WHEN step > 0::numeric THEN least(outermost, bound)
        ELSE greatest(outermost, bound) END AS last_one,
        least(
            pg_catalog.ceil((outermost - last) / step), pg_catalog.floor((bound - last) / step)
        ) + CASE WHEN is_called THEN 0::numeric ELSE 1::numeric END AS calls
    FROM present WHERE (outermost - last) / step >= 0::numeric
)
SELECT CASE
    WHEN calls <= {nextvals}::numeric THEN (
        SELECT pg_catalog.count(pg_catalog.nextval($1::text::regclass))
        FROM pg_catalog.generate_series(1::int8, calls::int8)
    ) IS NOT NULL
    WHEN pg_catalog.has_sequence_privilege($1::text, 'UPDATE')
        THEN pg_catalog.setval($1::text::regclass, pg_catalog.trunc(last_one)::int8) IS NOT NULL
    ELSE false
END FROM counted
"""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column. sequence: the qualified name of the one that it takes values from, or ''."""

    is_generated: bool
    sequence: str


class TargetFailed(Exception):
    """The server refused a statement; ``result`` is its error."""

    def __init__(self, result: PGresult) -> None:
        super().__init__()
        self.result = result


def columns_of(connection: TenantConnection, table: str) -> dict[str, TargetColumn]:
    """Return the columns of a table by name; none if there is no such table.

    table: quoted. Raises TargetFailed, ConnectionLost, ResultOverflow.
    """
    return {
        name.decode(): TargetColumn(generated == b"t", sequence.decode())
        for name, generated, sequence in _rows(connection, COLUMNS, table)
    }


def move_sequence(
    connection: TenantConnection, sequence: str, *, table: str, column: str, name: str
) -> bool:
    """Move a sequence to the largest value of its column if it is behind, and never back.

    table, column: quoted. name: of the column. A sequence with a negative increment moves to the
    smallest one. False if the role may not.
    Raises TargetFailed, ConnectionLost, ResultOverflow.
    """
    if _rows(connection, MAY_MOVE, table, name, sequence) != [[b"t"]]:
        return False
    text = MOVE.format(table=table, column=column, sequence=sequence, nextvals=NEXTVALS)
    return _rows(connection, text.encode(), sequence) != [[b"f"]]


def _rows(connection: TenantConnection, text: bytes, *params: str) -> list[list[bytes]]:
    connection.send_statement(text, [param.encode() for param in params])
    rows: list[list[bytes]] = []
    while (result := connection.next_result()) is not None:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise TargetFailed(result)
        rows += [
            [result.get_value(row, column) or b"" for column in range(result.nfields)]
            for row in range(result.ntuples)
        ]
    return rows
