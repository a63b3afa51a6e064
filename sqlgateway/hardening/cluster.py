"""Requirements on the server before it holds tenants' databases."""

from collections.abc import Iterator
from typing import Final

import psycopg

from common.machine.postgres_programs import MINOR_FLOOR

# ALTER ROLE compares a new verifier with the empty password, with the verifier's number of
# iterations. Since this version that can be interrupted.
INTERRUPTS_SCRAM: Final = 160000
TRUSTED: Final = frozenset(
    {
        "plpgsql",
        "pg_trgm",
        "citext",
        "hstore",
        "vector",
        "pgcrypto",
        "uuid-ossp",
        "btree_gin",
        "btree_gist",
        "unaccent",
        "fuzzystrmatch",
        "tablefunc",
        "intarray",
        "ltree",
    }
)
# PostgreSQL's own, which it marks as trusted: types, functions, sampling of a tenant's own tables,
# and NOTIFY, which a tenant may run anyway. They reach no file, no server and no shared memory, and
# a tenant could break with them what it could break with those above.
HARMLESS: Final = frozenset(
    {"cube", "dict_int", "isn", "lo", "seg", "tcn", "tsm_system_rows", "tsm_system_time"}
)
# What their version() has, of servers that speak PostgreSQL's protocol.
OTHER_ENGINES: Final = {
    "CockroachDB": "CockroachDB",
    "-YB-": "YugabyteDB",
    "Yugabyte": "YugabyteDB",
    "Greenplum": "Greenplum",
    "Cloudberry": "Cloudberry",
    "Redshift": "Amazon Redshift",
    "EnterpriseDB": "EDB Postgres Advanced Server",
    "openGauss": "openGauss",
    "PolarDB": "PolarDB",
}
OF_CITUS: Final = "SELECT current_setting('citus.shard_count', true)"
WANTED: Final = {
    "max_prepared_transactions": ("0",),
    "wal_level": ("minimal", "replica"),
    "jit": ("off",),
    "password_encryption": ("scram-sha-256",),
}


def engine_complaint(connection: psycopg.Connection) -> str:
    """Return a sentence if a server is not PostgreSQL 15 to 18 itself, otherwise ""."""
    row = connection.execute("SELECT pg_catalog.version()").fetchone()
    version = str(row[0]) if row is not None else ""
    name = next((name for sign, name in OTHER_ENGINES.items() if sign in version), "")
    if not name and not version.startswith("PostgreSQL "):
        name = version.partition(" ")[0]
    # A setting of its library, which is also there while the library is not loaded.
    if not name and connection.execute(OF_CITUS).fetchone() != (None,):
        name = "Citus"
    if name:
        return (
            f"The server is {name}, which does not keep tenants apart as PostgreSQL does; only "
            "PostgreSQL 15 to 18 itself can be used (docs/production.md)."
        )
    major = connection.info.server_version // 10_000
    return "" if major in MINOR_FLOOR else (version_complaint(connection.info.server_version) or "")


def version_complaint(version: int) -> str | None:
    """Return a sentence if a version (such as 180006) lacks security fixes, otherwise None."""
    major, minor = divmod(version, 10_000)
    floor = MINOR_FLOOR.get(major)
    if floor is None:
        return f"PostgreSQL {major} is not among 15 to 18."
    if minor < floor:
        return (
            f"PostgreSQL {major}.{minor} is older than {major}.{floor}, which closes known holes."
        )
    return None


def complaints(connection: psycopg.Connection) -> Iterator[str]:
    """Return a sentence for each property of the server that a hostile tenant could use."""
    too_old = version_complaint(connection.info.server_version)
    if too_old is not None:
        yield too_old
    if connection.info.server_version < INTERRUPTS_SCRAM:
        yield (
            "PostgreSQL 15 cannot interrupt ALTER ROLE with a verifier of many iterations, so that "
            "a tenant can occupy processors for hours; use 16 or later."
        )
    yield from _settings(connection)
    yield from _extensions(connection)
    yield from _authentication(connection)


def close_to_public(connection: psycopg.Connection) -> None:
    """Forbid tenants' roles to connect to the databases that every server has."""
    connection.execute("REVOKE ALL ON DATABASE postgres, template1, template0 FROM PUBLIC")


def _settings(connection: psycopg.Connection) -> Iterator[str]:
    rows = connection.execute(
        "SELECT name, setting FROM pg_settings WHERE name = ANY(%s) ORDER BY name", [list(WANTED)]
    )
    for name, value in rows:
        if value not in WANTED[name]:
            yield f"{name} is {value}; it should be {' or '.join(WANTED[name])}."


def _extensions(connection: psycopg.Connection) -> Iterator[str]:
    # Those that are not trusted (dblink, file_fdw, …) need a superuser, which no tenant is.
    rows = connection.execute(
        "SELECT DISTINCT name FROM pg_available_extension_versions WHERE trusted ORDER BY name"
    )
    for (name,) in rows:
        if name not in TRUSTED | HARMLESS:
            yield (
                f"The extension {name} is trusted: each tenant can install it. Remove its package, "
                "or divert its control file, so that no upgrade brings it back "
                "(docs/production.md)."
            )


def _authentication(connection: psycopg.Connection) -> Iterator[str]:
    rows = connection.execute(
        "SELECT DISTINCT auth_method FROM pg_hba_file_rules "
        "WHERE auth_method IN ('trust', 'password', 'md5', 'ident') ORDER BY 1"
    )
    for (method,) in rows:
        yield f"pg_hba.conf lets roles in by {method}; it should be scram-sha-256."
