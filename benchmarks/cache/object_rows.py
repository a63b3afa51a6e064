"""Rows of objects in a brain's tables, made by SQL: as PUTs of 100 kB with one copy on a node."""

import uuid
from collections.abc import Iterator
from typing import Any, Final

import psycopg

TABLES: Final = (
    "brain_blob",
    "brain_storedobject",
    "brain_storedblob",
    "brain_cachedobject",
    "brain_location",
)
FOLDER: Final = 1000
CONSTRAINTS: Final = (
    "SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid), contype"
    " FROM pg_constraint WHERE contype IN ('p', 'u', 'f')"
    " AND (conrelid = ANY(%(tables)s::regclass[]) OR confrelid = ANY(%(tables)s::regclass[]))"
    " ORDER BY contype = 'f'"
)
INDEXES: Final = (
    "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index"
    " WHERE indrelid = ANY(%(tables)s::regclass[])"
)
KEY: Final = (
    "format('top%%s/folder%%s/object-%%s.webp', n / 1000 %% 10, lpad((n / 1000)::text, 6, '0'),"
    " lpad(n::text, 10, '0'))"
)
NUMBERS: Final = "FROM generate_series(0, %(size)s - 1) n"
SHA256: Final = "sha256(n::text::bytea)"
MD5: Final = "md5(n::text)"
FIELDS: Final = "etag, content_type, headers, metadata, checksums, parts, last_modified"
VALUES: Final = f"{MD5}, 'image/webp', '{{}}', '{{}}', '{{}}', '[]', now()"
STORED_NAME: Final = (
    "concat_ws('/', s.tag, %(organization)s::bigint, %(environment)s::bigint, 'objects',"
    f" left({MD5}, 2), {MD5})"
)
# In this order: each refers to rows before it.
ROWS: Final = (
    (
        "INSERT INTO brain_node (id, endpoint, region, capacity_bytes, status, secret_hash,"
        " last_seen_at) VALUES (%(node)s, 'http://127.0.0.1:1', 'eu', 1, 'active', '',"
        " now() - interval '1 day')"
    ),
    (
        "INSERT INTO brain_blob (sha256, size, md5, crc32, chunks)"
        f" SELECT {SHA256}, 100000, decode({MD5}, 'hex'), n, {SHA256} || '\\x01020304' {NUMBERS}"
    ),
    (
        f"INSERT INTO brain_storedobject (bucket_id, key, blob_id, {FIELDS})"
        f" SELECT %(bucket)s, {KEY}, {SHA256}, {VALUES} {NUMBERS}"
    ),
    (
        "INSERT INTO brain_storedblob"  # noqa: S608 - literals alone
        " (organization_id, environment_pk, blob_id, store_id, name)"
        f" SELECT %(organization)s, %(environment)s, {SHA256}, s.id, {STORED_NAME} {NUMBERS},"
        " (SELECT id, tag FROM brain_store WHERE is_active) s"
    ),
    (
        f"INSERT INTO brain_cachedobject (bucket_id, key, blob_id, {FIELDS}, generation, http)"
        f" SELECT %(bucket)s, {KEY}, {SHA256}, {VALUES}, n + 1, '{{}}' {NUMBERS}"
    ),
    f"INSERT INTO brain_location (blob_id, node_id) SELECT {SHA256}, %(node)s {NUMBERS}",
    "SELECT setval('brain_generation', %(size)s + 1000)",
)


def key_of(number: int) -> str:
    """Return the key of an object: ten folders at the root, a thousand objects in each below."""
    folder = number // FOLDER
    return f"top{folder % 10}/folder{folder:06}/object-{number:010}.webp"


def fill(
    connection: psycopg.Connection, bucket_id: int, tenant: tuple[int, int], size: int
) -> None:
    """Make the rows of a bucket's objects; indexes and constraints are made after them."""
    names: dict[str, Any] = {"tables": list(TABLES)}
    values = {
        "size": size,
        "bucket": bucket_id,
        "organization": tenant[0],
        "environment": tenant[1],
        "node": uuid.uuid4(),
    }
    # In one transaction with TRUNCATE: a server without replicas then writes no log of them.
    with connection.transaction():
        connection.execute("SET LOCAL maintenance_work_mem = '512MB'")
        constraints = connection.execute(CONSTRAINTS, names).fetchall()
        connection.execute(f"TRUNCATE {', '.join(TABLES)} CASCADE")
        for table, name, _, _ in reversed(constraints):
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
        indexes = connection.execute(INDEXES, names).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}".encode())
        for statement in ROWS:
            connection.execute(statement.encode(), values)
        for _, definition in indexes:
            connection.execute(definition.encode())
        for table, name, definition, kind in constraints:
            unchecked = " NOT VALID" if kind == "f" and "NOT VALID" not in definition else ""
            add = f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}{unchecked}"
            connection.execute(add.encode())
    connection.execute(f"VACUUM (ANALYZE) {', '.join(TABLES)}")


def sizes_of_tables(connection: psycopg.Connection) -> Iterator[tuple[str, int]]:
    """Yield the bytes of each table with its indexes, and of the database."""
    for table in TABLES:
        row = connection.execute("SELECT pg_total_relation_size(%s::regclass)", [table]).fetchone()
        yield table, int(row[0]) if row else 0
    row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    yield "the database", int(row[0]) if row else 0
